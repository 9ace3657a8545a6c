type Entry =
  | { kind: 'string'; value: string }
  | { kind: 'hash'; value: Map<string, string> }
  | { kind: 'zset'; value: Map<string, number> };

type Reply = string | number | null | Reply[];

/** The commands of Redis that the budget's script uses, in memory, with a clock that the test sets. */
export class RedisModel {
  /** Microseconds since 1970, for `TIME` and for expiry. */
  nowUs: number;
  /** Whether keys are forgotten at their time. */
  expires = true;
  readonly #entries = new Map<string, Entry>();
  readonly #expiresAtMs = new Map<string, number>();

  constructor(nowUs: number) {
    this.nowUs = nowUs;
  }

  /** As FLUSHALL. */
  flush(): void {
    this.#entries.clear();
    this.#expiresAtMs.clear();
  }

  /** @throws Error for a command, or a use of one, that is not modelled */
  call(name: string, args: readonly string[]): Reply {
    const [key = '', ...rest] = args;
    const nowMs = Math.floor(this.nowUs / 1_000);
    if (this.expires && (this.#expiresAtMs.get(key) ?? Number.POSITIVE_INFINITY) <= nowMs) this.#delete(key);
    switch (name) {
      case 'TIME':
        return [String(Math.floor(this.nowUs / 1e6)), String(this.nowUs % 1e6)];
      case 'PEXPIRE':
        if (!this.#entries.has(key)) return 0;
        this.#expiresAtMs.set(key, nowMs + integer(rest[0]));
        return 1;
      case 'GET':
        return this.#get(key, 'string')?.value ?? null;
      case 'SET': {
        const [value = '', px, ms] = rest;
        if (px !== undefined && px !== 'PX') throw new Error('SET is modelled with PX or nothing');
        this.#entries.set(key, { kind: 'string', value });
        if (px === undefined) this.#expiresAtMs.delete(key);
        else this.#expiresAtMs.set(key, nowMs + integer(ms));
        return 'OK';
      }
      default:
        return name.startsWith('H') ? this.#callHash(name, key, rest) : this.#callSet(name, key, rest);
    }
  }

  #callHash(name: string, key: string, rest: readonly string[]): Reply {
    const hash = this.#get(key, 'hash')?.value ?? new Map<string, string>();
    const before = hash.size;
    switch (name) {
      case 'HMGET':
        return rest.map((field) => hash.get(field) ?? null);
      case 'HGETALL':
        return [...hash].flat();
      case 'HSET':
        if (rest.length === 0 || rest.length % 2 !== 0) throw new Error('HSET wants pairs');
        for (let index = 0; index < rest.length; index += 2)
          hash.set(rest[index] ?? '', rest[index + 1] ?? '');
        break;
      case 'HDEL':
        for (const field of rest) hash.delete(field);
        break;
      default:
        throw new Error(`${name} is not modelled`);
    }
    this.#put(key, { kind: 'hash', value: hash });
    return Math.abs(hash.size - before);
  }

  #callSet(name: string, key: string, rest: readonly string[]): Reply {
    const set = this.#get(key, 'zset')?.value ?? new Map<string, number>();
    const before = set.size;
    const [first = '', second = ''] = rest;
    switch (name) {
      case 'ZCARD':
        return set.size;
      case 'ZCOUNT':
        return between(set, first, second).length;
      case 'ZRANGE': {
        if (rest[2] !== 'WITHSCORES') throw new Error('ZRANGE is modelled with WITHSCORES only');
        const last = integer(second);
        const members = between(set, '-inf', '+inf').slice(
          integer(first),
          last < 0 ? last + 1 || undefined : last + 1,
        );
        return members.flatMap((member) => [member, String(set.get(member))]);
      }
      case 'ZADD': {
        const onlyOld = first === 'XX';
        const [score = '', member = ''] = onlyOld ? rest.slice(1) : rest;
        if (!onlyOld || set.has(member)) set.set(member, number(score));
        break;
      }
      case 'ZREM':
        for (const member of rest) set.delete(member);
        break;
      case 'ZREMRANGEBYSCORE':
        for (const member of between(set, first, second)) set.delete(member);
        break;
      default:
        throw new Error(`${name} is not modelled`);
    }
    this.#put(key, { kind: 'zset', value: set });
    return Math.abs(set.size - before);
  }

  #get<Kind extends Entry['kind']>(key: string, kind: Kind): Extract<Entry, { kind: Kind }> | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.kind !== kind) throw new Error(`WRONGTYPE: ${key} holds a ${entry.kind}`);
    return entry as Extract<Entry, { kind: Kind }>;
  }

  #put(key: string, entry: Extract<Entry, { value: Map<string, unknown> }>): void {
    if (entry.value.size === 0) this.#delete(key);
    else this.#entries.set(key, entry);
  }

  #delete(key: string): void {
    this.#entries.delete(key);
    this.#expiresAtMs.delete(key);
  }
}

/** Members by score, then by name, as Redis orders them. */
function between(set: ReadonlyMap<string, number>, from: string, to: string): string[] {
  const [low, high] = [number(from), number(to)];
  return [...set]
    .filter(([, score]) => score >= low && score <= high)
    .sort(([one, low], [other, high]) => low - high || (one < other ? -1 : 1))
    .map(([member]) => member);
}

function number(text: string): number {
  if (text === '-inf' || text === '+inf') return text === '-inf' ? -Infinity : Infinity;
  const value = Number(text);
  if (text === '' || Number.isNaN(value)) throw new Error(`${text} is not a number`);
  return value;
}

function integer(text = ''): number {
  const value = number(text);
  if (!Number.isSafeInteger(value)) throw new Error(`${text} is not an integer`);
  return value;
}
