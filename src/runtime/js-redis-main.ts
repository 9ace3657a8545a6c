import { readFileSync } from 'node:fs';
import {
  createRedisCommandExecutor,
  RedisServerState,
  Resp2Server,
  shutdownCommand,
} from 'js-redis-server/core';

/** The private Redis where there is no server binary: takes `port` and `requirepass` of the configuration file that it is given. */
const [, , file = ''] = process.argv;
const settings = new Map(
  readFileSync(file, 'utf8')
    .split('\n')
    .map((line): [string, string] => {
      const [name = '', value = ''] = line.split(' ');
      return [name, value];
    }),
);
const requirepass = settings.get('requirepass');
if (!requirepass) throw new Error('requirepass is needed');

// Its own SHUTDOWN ends the connection alone.
shutdownCommand.execute = () => process.exit();

const server = new Resp2Server({
  server: new RedisServerState({ requirepass, databaseCount: 16 }),
  executor: createRedisCommandExecutor({}),
});
// Its own listen() would open the port to the network.
server.server.listen(Number(settings.get('port')), '127.0.0.1');
server.server.on('error', (error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
