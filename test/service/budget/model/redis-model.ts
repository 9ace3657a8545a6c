type Reply = string | number | null | Reply[];
type Entry = string | Map<string, number>;

/** The Redis commands of the budget's script, in memory. The test sets the clock. */
export class RedisModel {
  /** Milliseconds since 1970. */
  nowMs: number;
  /** Whether keys expire. */
  expires = true;
  readonly #entries = new Map<string, Entry>();
  readonly #expiresAtMs = new Map<string, number>();

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  /** @throws Error if the model lacks the command */
  call(name: string, args: readonly string[]): Reply {
    const [key = '', ...rest] = args;
    if (this.expires && (this.#expiresAtMs.get(key) ?? Number.POSITIVE_INFINITY) <= this.nowMs)
      this.#delete(key);
    switch (name) {
      case 'TIME':
        return [String(Math.floor(this.nowMs / 1_000)), String(Math.round((this.nowMs % 1_000) * 1_000))];
      case 'PEXPIRE':
        if (!this.#entries.has(key)) return 0;
        this.#expiresAtMs.set(key, this.nowMs + number(rest[0]));
        return 1;
      case 'GET': {
        const entry = this.#entries.get(key);
        return typeof entry === 'string' ? entry : null;
      }
      case 'SET':
        this.#entries.set(key, rest[0] ?? '');
        this.#expiresAtMs.set(key, this.nowMs + number(rest[2]));
        return 'OK';
      default:
        return this.#callSet(name, key, rest);
    }
  }

  #callSet(name: string, key: string, rest: readonly string[]): Reply {
    const entry = this.#entries.get(key);
    const set = entry instanceof Map ? entry : new Map<string, number>();
    const before = set.size;
    const [first = '', second = ''] = rest;
    switch (name) {
      case 'ZCARD':
        return set.size;
      case 'ZCOUNT':
        return between(set, first, second).length;
      case 'ZRANGE': {
        const members = between(set, '-inf', '+inf').slice(number(first), number(second) + 1);
        return members.flatMap((member) => [member, String(set.get(member))]);
      }
      case 'ZADD': {
        const onlyOld = first === 'XX';
        const [score = '', member = ''] = onlyOld ? rest.slice(1) : rest;
        if (!onlyOld || set.has(member)) set.set(member, number(score));
        break;
      }
      case 'ZREM':
        set.delete(first);
        break;
      case 'ZREMRANGEBYSCORE':
        for (const member of between(set, first, second)) set.delete(member);
        break;
      default:
        throw new Error(`${name} is not modelled`);
    }
    if (set.size === 0) this.#delete(key);
    else this.#entries.set(key, set);
    return Math.abs(set.size - before);
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

function number(text = ''): number {
  if (text === '-inf' || text === '+inf') return text === '-inf' ? -Infinity : Infinity;
  const value = Number(text);
  if (text === '' || Number.isNaN(value)) throw new Error(`${text} is not a number`);
  return value;
}
