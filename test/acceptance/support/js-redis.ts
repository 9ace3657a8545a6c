import { text } from 'node:stream/consumers';
import { createRedisCommandExecutor, RedisServerState, Resp2Server } from 'js-redis-server/core';

// A Redis in JavaScript, for machines without a server. It reads a Redis configuration from standard input.
const settings = new Map(
  (await text(process.stdin)).split('\n').map((line) => line.trim().split(/\s+/, 2) as [string, string]),
);
const state = new RedisServerState({ requirepass: settings.get('requirepass') ?? '', databaseCount: 16 });
const server = new Resp2Server({ server: state, executor: createRedisCommandExecutor({}) });
server.server.listen(Number(settings.get('port')), '127.0.0.1');
