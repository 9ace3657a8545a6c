import { readFileSync } from 'node:fs';
import {
  createRedisCommandExecutor,
  RedisServerState,
  Resp2Server,
  shutdownCommand,
} from 'js-redis-server/core';

/** The private Redis without a server binary. It uses `port` and `requirepass` of its configuration file. */
const [, , file = ''] = process.argv;
const settings = readFileSync(file, 'utf8');
const port = /^port (\d+)$/m.exec(settings)?.[1];
const requirepass = /^requirepass (\S+)$/m.exec(settings)?.[1];
if (!requirepass) throw new Error('requirepass is needed');

// The library's own SHUTDOWN ends the connection alone.
shutdownCommand.execute = () => process.exit();

const server = new Resp2Server({
  server: new RedisServerState({ requirepass, databaseCount: 16 }),
  executor: createRedisCommandExecutor({}),
});
// The library's own listen() would open the port to the network.
server.server.listen(Number(port), '127.0.0.1');
server.server.on('error', (error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
