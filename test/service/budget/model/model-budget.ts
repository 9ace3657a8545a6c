import type { Redis } from 'ioredis';
import { LuaWasmEngine } from 'lua-redis-wasm';
import { RateBudget } from '../../../../src/service/budget.ts';
import { RedisModel } from './redis-model.ts';

type LuaReply = ReturnType<LuaWasmEngine['eval']>;

/** The Redis of the present run: all runs share one Lua VM. */
let current: RedisModel;

const engine = await LuaWasmEngine.create({
  host: { redisCall: (args) => callModel(args), redisPcall: (args) => callModel(args), log: () => undefined },
});

function callModel([name = Buffer.from(''), ...args]: Buffer[]): LuaReply {
  const toLua = (reply: ReturnType<RedisModel['call']>): LuaReply => {
    if (typeof reply === 'string') return Buffer.from(reply);
    return Array.isArray(reply) ? reply.map(toLua) : reply;
  };
  const texts = args.map((arg) => arg.toString());
  return toLua(current.call(name.toString().toUpperCase(), texts));
}

/** The real budgets of two processes on a model of Redis. Redis' own Lua runs their script. */
export function modelBudget(nowMs: number, options?: ConstructorParameters<typeof RateBudget>[1]) {
  const redis = new RedisModel(nowMs);
  const script = { keys: 0, lua: '' };
  const client = {
    defineCommand(_name: string, { numberOfKeys, lua }: { numberOfKeys: number; lua: string }) {
      // The VM compiles the script at every call, faster without comments.
      Object.assign(script, { keys: numberOfKeys, lua: lua.replace(/^\s*--.*\n/gm, '') });
    },
    get: async (key: string) => redis.call('GET', [key]),
    time: async () => redis.call('TIME', []),
    async rateBudget(...all: string[]) {
      current = redis;
      const reply = engine.evalWithArgs(script.lua, all.slice(0, script.keys), all.slice(script.keys));
      if (!Array.isArray(reply)) throw new Error(`the script failed: ${JSON.stringify(reply)}`);
      return reply.map((part) => (Buffer.isBuffer(part) ? part.toString() : part));
    },
  };
  const newBudget = () => new RateBudget(client as unknown as Redis, options);
  return { redis, budget: newBudget(), sibling: newBudget() };
}
