import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const addressSchema = z.object({
  kind: z.enum(['redis-server', 'valkey-server', 'js-redis-server']),
  port: z.int().min(1).max(65_535),
  password: z.string().min(1),
  pid: z.int().min(2),
});

/** Where a private Redis is found. The password is its own, made at its start: who takes it is that very server. */
export type Address = z.infer<typeof addressSchema>;

/** One that an earlier version kept has no place: it is taken for this directory's. */
const keptSchema = addressSchema.extend({ place: z.string().optional() });

const fileOf = (dir: string): string => join(dir, 'address.json');

/**
 * @returns the address kept in `dir`, or undefined when there is none that can be read, or the directory is a copy: that
 *   one's server has other files, and other users
 */
export function readAddress(dir: string): Address | undefined {
  try {
    const { place, ...address } = keptSchema.parse(JSON.parse(readFileSync(fileOf(dir), 'utf8')));
    return place === undefined || place === placeOf(dir) ? address : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps the address in `dir`, readable for its owner alone, in one step. */
export function writeAddress(dir: string, address: Address): void {
  const temporary = `${fileOf(dir)}.${process.pid}`;
  writeFileSync(temporary, JSON.stringify({ ...address, place: placeOf(dir) }), { mode: 0o600 });
  renameSync(temporary, fileOf(dir));
}

/** What tells a directory from its copies, also under another name. */
function placeOf(dir: string): string {
  const { dev, ino } = statSync(dir, { bigint: true });
  return `${dev}:${ino}`;
}

/** Forgets the address. */
export function removeAddress(dir: string): void {
  rmSync(fileOf(dir), { force: true });
}

/** @returns what ioredis takes */
export function urlOf({ port, password }: Pick<Address, 'port' | 'password'>): string {
  return `redis://:${password}@127.0.0.1:${port}`;
}
