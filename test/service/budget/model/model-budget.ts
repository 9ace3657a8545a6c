import type { Redis } from 'ioredis';
import { LuaWasmEngine } from 'lua-redis-wasm';
import { CountWatch } from '../../../../src/service/budget/count-watch.ts';
import { RateBudget } from '../../../../src/service/budget/rate-budget.ts';
import { RedisModel } from './redis-model.ts';

type LuaReply = ReturnType<LuaWasmEngine['eval']>;

/** What the Lua VM calls; the model changes from run to run, the VM stays. */
let current: RedisModel;

const engine = await LuaWasmEngine.create({
  host: { redisCall: (args) => callModel(args), redisPcall: (args) => callModel(args), log: () => undefined },
});

function callModel([name = Buffer.from(''), ...args]: Buffer[]): LuaReply {
  const toLua = (reply: ReturnType<RedisModel['call']>): LuaReply => {
    if (typeof reply === 'string') return Buffer.from(reply);
    return Array.isArray(reply) ? reply.map(toLua) : reply;
  };
  return toLua(
    current.call(
      name.toString().toUpperCase(),
      args.map((arg) => arg.toString()),
    ),
  );
}

/** The budget as it is, its script run by Redis' Lua, on a Redis in memory whose clock the test sets. */
export function modelBudget(nowMs: number, keptForPeople?: number) {
  const redis = new RedisModel(nowMs * 1_000);
  let calls = 0;
  const script = { keys: 0, lua: '' };
  const client = {
    defineCommand(_name: string, { numberOfKeys, lua }: { numberOfKeys: number; lua: string }) {
      script.keys = numberOfKeys;
      script.lua = withoutComments(lua);
    },
    on: () => undefined,
    async get(key: string) {
      return redis.call('GET', [key]);
    },
    async time() {
      return redis.call('TIME', []);
    },
    async rateBudget(...all: (string | number)[]) {
      calls++;
      current = redis;
      const [keys, args] = [all.slice(0, script.keys), all.slice(script.keys)];
      const reply = engine.evalWithArgs(script.lua, keys.map(String), args.map(String));
      if (!Array.isArray(reply)) throw new Error(`the script failed: ${JSON.stringify(reply)}`);
      return reply.map((part) => (Buffer.isBuffer(part) ? part.toString() : part));
    },
  };
  const connection = client as unknown as Redis;
  const watch = new CountWatch(connection, () => Math.floor(redis.nowUs / 1_000));
  const budget = new RateBudget(connection, keptForPeople, undefined, 0, watch);
  return { redis, connection, watch, budget, calls: () => calls };
}

/** The VM compiles the script at every call: what it need not read is left out. */
function withoutComments(lua: string): string {
  return lua.replace(/^\s*--.*$/gm, '').replace(/\n\s*/g, '\n');
}
