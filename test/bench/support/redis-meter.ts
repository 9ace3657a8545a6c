import { Redis } from 'ioredis';

/** Reads what a Redis has used. */
export class RedisMeter {
  readonly #redis: Redis;

  constructor(url: string) {
    this.#redis = new Redis(url);
  }

  /** Time on a processor, in milliseconds: all of it that Redis itself counts. */
  async cpuMs(): Promise<number> {
    const info = await this.#redis.info('cpu');
    return 1_000 * (fieldOf(info, 'used_cpu_user') + fieldOf(info, 'used_cpu_sys'));
  }

  async calls(): Promise<number> {
    return fieldOf(await this.#redis.info('stats'), 'total_commands_processed');
  }

  close(): void {
    this.#redis.disconnect();
  }
}

function fieldOf(info: string, name: string): number {
  const value = new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1];
  if (value === undefined) throw new Error(`Redis does not tell ${name}`);
  return Number(value);
}
