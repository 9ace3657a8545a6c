import { z } from 'zod';
import { GUARD_LIMIT_SHAPE, openGuards, readGuardLimit } from '../contract/guard-limit.ts';
import { WINDOW_MS } from '../contract/limits.ts';
import { portProblem } from '../contract/listen-error.ts';
import { CALLBACK_PATH } from '../contract/routes.ts';
import { EXPOSE_WORDS, SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import type { SandboxOptions } from './types.ts';

const HOUR_MS = 60 * 60_000;

function wholeNumber(min: number, max: number) {
  const isInRange = (text: string) => /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max;
  return z.string().refine(isInRange, `must be a whole number from ${min} to ${max}`).transform(Number);
}

const port = z
  .string()
  .refine((text) => portProblem(text) === undefined, { error: ({ input }) => portProblem(String(input)) })
  .transform(Number);

const guardLimit = z
  .string()
  .refine((text) => readGuardLimit(text) !== undefined, GUARD_LIMIT_SHAPE)
  .transform(readGuardLimit);

const ORIGIN_SHAPE = 'must be an origin like https://sandbox.example, without a path';

const schema = z.object({
  NODE_ENV: z
    .string()
    .refine(
      (value) => value !== 'production',
      'is production: unset it, because the sandbox is no part of it',
    )
    .optional(),
  SANDBOX_PORT: port.default(SANDBOX_DEFAULTS.port),
  SANDBOX_WINDOW_MS: wholeNumber(1, HOUR_MS).default(WINDOW_MS),
  SANDBOX_LATENCY_MS: wholeNumber(0, HOUR_MS).default(0),
  SANDBOX_GUARD_ANALYTICS: guardLimit.optional(),
  SANDBOX_GUARD_RESOURCE: guardLimit.optional(),
  SANDBOX_HOST: z.string().default(SANDBOX_DEFAULTS.host),
  SANDBOX_PUBLIC_URL: z.string().refine(isOrigin, ORIGIN_SHAPE).optional(),
  SANDBOX_SEED: z.string().optional(),
  SANDBOX_EXPIRES_AT: z.enum(['string', 'number', 'iso'], 'must be string, number or iso').default('string'),
  SANDBOX_CHANGES: z.enum(['200', '204'], 'must be 200 or 204').default('200'),
  SANDBOX_ORDER: z.enum(['activity', 'created'], 'must be activity or created').optional(),
  SANDBOX_APPLICATION_NAME: z.string().max(200, 'must have at most 200 characters').optional(),
  SANDBOX_STRICT: z.enum(['yes', 'no'], 'must be yes or no').optional(),
  SANDBOX_EXPOSE: z.literal(EXPOSE_WORDS, `must be ${EXPOSE_WORDS}, word for word`).optional(),
  // The app's, for its redirect addresses; elsewhere they may mean something else.
  PUBLIC_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .catch(undefined),
  PORT: port.optional().catch(undefined),
});

function redirectUris(publicUrl: string | undefined, port: number | undefined): string[] {
  if (publicUrl !== undefined) return [publicUrl.replace(/\/+$/, '') + CALLBACK_PATH];
  return port ? ['localhost', '127.0.0.1'].map((host) => `http://${host}:${port}${CALLBACK_PATH}`) : [];
}

/**
 * Reads the sandbox's options from environment variables; an empty one counts as unset.
 *
 * @param flags what the command line says instead, by variable: the flag's name and its value
 * @returns the options, or every problem: the variable or flag, and what is wrong with it
 */
export function optionsFromEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  flags: ReadonlyMap<string, { flag: string; value: string }> = new Map(),
): SandboxOptions | string[] {
  const given = new Map(Object.entries(environment).map(([name, value = '']) => [name, value.trim()]));
  for (const [name, { value }] of flags) given.set(name, value);
  const result = schema.safeParse(Object.fromEntries([...given].filter(([, value]) => value !== '')));
  if (!result.success) {
    return result.error.issues.map(({ path, message }) => {
      const name = path.join('.');
      return `${flags.get(name)?.flag ?? name} ${message}`;
    });
  }
  const { data } = result;
  return {
    host: data.SANDBOX_HOST,
    port: data.SANDBOX_PORT,
    windowMs: data.SANDBOX_WINDOW_MS,
    latencyMs: data.SANDBOX_LATENCY_MS,
    guards: openGuards({ analytics: data.SANDBOX_GUARD_ANALYTICS, resource: data.SANDBOX_GUARD_RESOURCE }),
    redirectUris: redirectUris(data.PUBLIC_URL, data.PORT),
    readings: { expiresAt: data.SANDBOX_EXPIRES_AT, changes: data.SANDBOX_CHANGES === '204' ? 204 : 200 },
    order: data.SANDBOX_ORDER,
    applicationName: data.SANDBOX_APPLICATION_NAME,
    strict: data.SANDBOX_STRICT && data.SANDBOX_STRICT === 'yes',
    publicUrl: data.SANDBOX_PUBLIC_URL,
    seed: data.SANDBOX_SEED,
    expose: data.SANDBOX_EXPOSE,
  };
}

/** @throws RangeError with NODE_ENV=production, and for options that the command would refuse, too */
export function checkOptions({ windowMs, latencyMs, publicUrl, order, readings = {} }: SandboxOptions): void {
  const given = [
    ['SANDBOX_WINDOW_MS', 'windowMs', windowMs],
    ['SANDBOX_LATENCY_MS', 'latencyMs', latencyMs],
    ['SANDBOX_PUBLIC_URL', 'publicUrl', publicUrl],
    ['SANDBOX_ORDER', 'order', order],
    ['SANDBOX_EXPIRES_AT', 'readings.expiresAt', readings.expiresAt],
    ['SANDBOX_CHANGES', 'readings.changes', readings.changes],
  ] as const;
  const flags = given.flatMap(([variable, flag, value]) =>
    value === undefined ? [] : [[variable, { flag, value: String(value) }] as const],
  );
  const options = optionsFromEnvironment({ NODE_ENV: process.env.NODE_ENV }, new Map(flags));
  if (Array.isArray(options)) throw new RangeError(options.join('\n'));
}

/** Whether a text is an origin of HTTP, with or without a slash at its end. */
function isOrigin(text: string): boolean {
  if (!/^https?:/i.test(text) || !URL.canParse(text)) return false;
  const { origin, href } = new URL(text);
  return href === `${origin}/`;
}
