import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import { loadConfig } from '../../src/config/config.ts';
import { readSettings } from '../../src/config/fork-settings.ts';
import { redact } from '../../src/runtime/redaction.ts';
import { tempDir } from '../support/temp-dir.ts';
import { testLogger } from '../support/test-logger.ts';

const FILE = 'src/integration/settings.ts';
const KEY = 'correct horse & "battery"';

const read = (shape: z.ZodRawShape | z.ZodObject, env: Record<string, string> = {}) => {
  const SETTINGS = shape instanceof z.ZodObject ? shape : z.object(shape);
  return readSettings(async () => ({ SETTINGS }), env);
};

describe('values', () => {
  it('are read with defaults and conversions, and an empty one is unset', async () => {
    const shape = {
      URL_OF_CRM: z.url(),
      BATCH: z.coerce.number().int().default(50),
      LISTS: z.string().transform((text) => text.split(',')),
      NOTE: z.string().optional(),
      DRY: z.stringbool().default(true),
    };
    const env = { URL_OF_CRM: 'https://crm.example', LISTS: 'a,b', NOTE: '', DRY: 'no', OTHER: 'x' };
    expect(await read(shape, env)).toEqual({
      settings: { URL_OF_CRM: 'https://crm.example', BATCH: 50, LISTS: ['a', 'b'], DRY: false },
      names: Object.keys(shape),
      problems: [],
    });
  });
});

describe('problems', () => {
  it.each<[string, z.ZodType, string, string]>([
    ['CRM_URL', z.url(), '', `is not set, and ${FILE} needs it`],
    ['CRM_BATCH', z.coerce.number(), '', `is not set, and ${FILE} needs it`],
    ['CRM_URL', z.url(), 'crm', 'is wrong: Invalid URL'],
    ['CRM_URL', z.url('must be a URL'), 'crm', 'must be a URL'],
    ['CRM_KEY', z.string(), '"quoted"', 'has quotes around its value: remove the quotes'],
    ['PORT', z.string(), '3000', `is a variable of the app: choose another name in ${FILE}`],
  ])('of %s say what is wrong (%#)', async (variable, schema, value, problem) => {
    const example = { examples: ['like this'] };
    const { problems } = await read({ [variable]: schema.meta(example) }, { [variable]: value });
    expect(problems).toEqual([{ variable, problem, example: 'like this' }]);
  });

  it('come all at once, in one message with those of the app', async () => {
    const shape = {
      CRM_URL: z
        .url()
        .meta({ examples: ['https://crm.example'] })
        .optional(),
      CRM_KEY: z.string(),
    };
    const { problems: others } = await read(shape, { CRM_URL: 'crm' });
    const load = () => loadConfig({ PORT: 'x' }, { dataDir: tempDir(), others });
    expect(load).toThrow(`The configuration has 3 problems (.env.example explains every variable):
  PORT must be a whole number from 0 to 65535 (it is "x")
      example: PORT=3000
  CRM_URL is wrong: Invalid URL
      example: CRM_URL=https://crm.example
  CRM_KEY is not set, and ${FILE} needs it`);
  });

  it('of the values together name the file', async () => {
    const together = z.object({ A: z.string() }).refine(() => false, 'A needs B');
    expect((await read(together, { A: 'a' })).problems).toEqual([
      { variable: FILE, problem: 'refuses the values: A needs B' },
    ]);
  });

  it.each([
    [async () => ({}), 'must export SETTINGS'],
    [async () => ({ SETTINGS: { CRM_URL: z.url() } }), 'must export SETTINGS'],
    [() => Promise.reject(new Error('no such module')), 'no such module'],
    [
      async () => ({
        SETTINGS: z.object({
          CRM_KEY: z.string().transform((text) => {
            throw new Error(`cannot read ${text}`);
          }),
        }),
      }),
      'a check that throws (Error)',
    ],
  ])('of the module name its file (%#)', async (load, problem) => {
    const { problems } = await readSettings(load, { CRM_KEY: KEY });
    expect(problems).toEqual([{ variable: FILE, problem: expect.stringContaining(problem) }]);
  });
});

test('a check of the fork’s own says its words, also of a variable that is not set', async () => {
  const message = 'must be set when CRM_URL is set';
  const shape = { CRM_URL: z.string(), CRM_KEY: z.string().optional() };
  const schema = z
    .object(shape)
    .refine(({ CRM_KEY }) => CRM_KEY !== undefined, { path: ['CRM_KEY'], message });
  const { problems } = await readSettings(async () => ({ SETTINGS: schema }), { CRM_URL: 'x' });
  expect(problems).toEqual([{ variable: 'CRM_KEY', problem: message }]);
});

describe('secrets', () => {
  it.each<[string, z.ZodType]>([
    ['CRM_KEY', z.string()],
    ['CRM_TOKEN', z.string().optional()],
    ['CRM_LOGIN', z.string().meta({ secret: true }).optional()],
    [
      'CRM_LOGIN',
      z
        .string()
        .meta({ secret: true })
        .transform((text) => text.length),
    ],
    ['CRM_LOGIN', z.string().default(KEY).meta({ secret: true })],
  ])('are blanked in logs and messages: %s (%#)', async (name, schema) => {
    const { settings } = await read({ [name]: schema }, { [name]: KEY });
    expect(redact(`The CRM refuses ${KEY}.`)).toBe('The CRM refuses [redacted].');
    const { logger, lines, text } = testLogger();
    logger.info({ settings }, 'read');
    logger
      .child({ by: [KEY] })
      .warn({ nested: { text: `as ${KEY}` } }, '%s', `https://crm.example?k=${encodeURIComponent(KEY)}`);
    logger.error({ err: new Error(`refused ${KEY}`) });
    expect(lines).toMatchObject([
      { settings: { [name]: '[redacted]' } },
      { by: ['[redacted]'], nested: { text: 'as [redacted]' }, msg: 'https://crm.example?k=[redacted]' },
      { err: { message: 'refused [redacted]' } },
    ]);
    expect(text()).not.toContain('horse');
  });

  it('are found behind z.preprocess', async () => {
    await read(
      { CRM_LOGIN: z.preprocess((text) => text, z.string().meta({ secret: true })) },
      { CRM_LOGIN: 'elaborate secret' },
    );
    expect(redact('an elaborate secret')).toBe('an [redacted]');
  });

  it('are neither short values nor those marked as no secret', async () => {
    const key = z.string().meta({ secret: false });
    await read({ DRY_TOKEN: z.string(), SORT_KEY: key }, { DRY_TOKEN: 'true', SORT_KEY: 'updated' });
    expect(redact('It is true that they are updated.')).toBe('It is true that they are updated.');
  });
});
