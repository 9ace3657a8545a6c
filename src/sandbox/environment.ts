import { z } from 'zod';
import { WINDOW_MS } from '../contract/limits.ts';
import { CALLBACK_PATH } from '../contract/routes.ts';
import { SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import type { SandboxOptions } from './sandbox.ts';

const PORT_MAX = 65_535;
const HOUR_MS = 60 * 60_000;

function wholeNumber(min: number, max: number) {
  const error = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d+$/, error)
    .transform(Number)
    .refine((value) => value >= min && value <= max, error);
}

const schema = z.object({
  NODE_ENV: z
    .string()
    .refine((value) => value !== 'production', 'is production: the sandbox is no part of that; unset it here')
    .optional(),
  SANDBOX_PORT: wholeNumber(0, PORT_MAX).default(SANDBOX_DEFAULTS.port),
  SANDBOX_WINDOW_MS: wholeNumber(1, HOUR_MS).default(WINDOW_MS),
  SANDBOX_LATENCY_MS: wholeNumber(0, HOUR_MS).default(0),
  PUBLIC_URL: z
    .url({ protocol: /^https?$/, error: 'must be an address like http://localhost:3000' })
    .optional(),
  PORT: wholeNumber(0, PORT_MAX).optional(),
});

function redirectUris(publicUrl: string | undefined, port: number | undefined): string[] {
  if (publicUrl !== undefined) return [publicUrl.replace(/\/+$/, '') + CALLBACK_PATH];
  return port ? ['localhost', '127.0.0.1'].map((host) => `http://${host}:${port}${CALLBACK_PATH}`) : [];
}

/**
 * Reads the sandbox's options from environment variables; an empty one counts as unset.
 *
 * @returns the options, or every problem: the variable and what is wrong with it
 */
export function optionsFromEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
): SandboxOptions | string[] {
  const given = Object.entries(environment).filter(([, value]) => value !== undefined && value !== '');
  const result = schema.safeParse(Object.fromEntries(given));
  if (!result.success) {
    return result.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
  }
  const { SANDBOX_PORT, SANDBOX_WINDOW_MS, SANDBOX_LATENCY_MS, PUBLIC_URL, PORT } = result.data;
  return {
    port: SANDBOX_PORT,
    windowMs: SANDBOX_WINDOW_MS,
    latencyMs: SANDBOX_LATENCY_MS,
    redirectUris: redirectUris(PUBLIC_URL, PORT),
  };
}
