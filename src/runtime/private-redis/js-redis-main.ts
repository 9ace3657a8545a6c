import { text } from 'node:stream/consumers';
import { createRedisCommandExecutor, RedisServerState, Resp2Server } from 'js-redis-server/core';

/** The private Redis where there is no server binary: takes `port` and `requirepass` of a Redis configuration from stdin. */
const settings = new Map(
  (await text(process.stdin)).split('\n').map((line): [string, string] => {
    const [name = '', value = ''] = line.trim().split(/\s+/, 2);
    return [name, value];
  }),
);
const requirepass = settings.get('requirepass');
if (!requirepass) throw new Error('requirepass is needed');

const server = new Resp2Server({
  server: new RedisServerState({ requirepass, databaseCount: 16 }),
  executor: createRedisCommandExecutor({}),
});
// Its own listen() would open the port to the network.
server.server.listen(Number(settings.get('port')), '127.0.0.1', () => {
  process.stdout.write(`Ready to accept connections on ${server.getAddress()}\n`);
});
server.server.on('error', (error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});

process.once('SIGTERM', () => {
  // The data is gone in any case: nothing is worth waiting for.
  process.exit(0);
});
