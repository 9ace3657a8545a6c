import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { afterEach, expect } from 'vitest';
import { GUARDS } from '../../../src/contract/guards.ts';
import { HEADER } from '../../../src/contract/headers.ts';
import { SANDBOX_DEFAULTS } from '../../../src/contract/sandbox.ts';
import { describeService } from '../../../src/sandbox/openapi/describe-service.ts';
import { createSandbox, type Sandbox, type SandboxOptions } from '../../../src/sandbox/sandbox.ts';

/** An answer to a method at a full URL. */
export interface Exchange {
  method: string;
  url: string;
  status: number;
  headers: Headers;
  body: string;
}

interface Reference {
  $ref?: string;
}

interface Schema {
  type?: string;
}

interface Body {
  content?: Record<string, { schema: Schema }>;
}

interface Header extends Reference {
  required?: boolean;
  schema: Schema;
}

interface Answer extends Body, Reference {
  headers?: Record<string, Header>;
}

interface Operation {
  requestBody?: Body;
  responses: Record<string, Answer>;
}

interface Document {
  components: { responses: Record<string, Answer>; headers: Record<string, Header> };
  paths: Record<string, Record<string, Operation>>;
}

/** Statuses of a path that is nobody's, or not with this method. */
const NOBODYS = [401, 404, 405, 429];

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Holds answers and bodies against the description of a sandbox with these options. */
function describedBy({ guards, readings }: SandboxOptions) {
  const { apiPath, authPath } = SANDBOX_DEFAULTS;
  const settings = {
    guards: { ...GUARDS, ...guards },
    readings: { expiresAt: 'string', changes: 200, ...readings } as const,
  };
  const text = JSON.stringify(describeService('http://127.0.0.1', settings));
  const document = JSON.parse(text.replaceAll('"$ref":"#', '"$ref":"service#')) as Document;
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  formats.default(ajv);
  ajv.addSchema(document, 'service');
  const compiled = new Map<Schema, ValidateFunction>();
  const paths = Object.entries(document.paths).map(([path, methods]) => {
    const area = 'servers' in methods ? authPath : apiPath;
    return { pattern: new RegExp(`^${area}${path.replace(/\{\w+\}/g, '[^/]+')}$`), methods };
  });

  function find(method: string, url: string): Operation | undefined {
    const { pathname } = new URL(url);
    const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
    return paths.find(({ pattern, methods }) => verb in methods && pattern.test(pathname))?.methods[verb];
  }

  function resolve<T extends Reference>(value: T, named: Record<string, T>): T {
    return value.$ref === undefined ? value : (named[value.$ref.split('/').at(-1) ?? ''] ?? value);
  }

  function check(schema: Schema, value: unknown, what: string): string[] {
    const validate = compiled.get(schema) ?? ajv.compile(schema);
    compiled.set(schema, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message }) => `${what}${instancePath} ${message}`);
  }

  return {
    /** All that is not as it is described in an answer. */
    problems({ method, url, status, headers: sent, body }: Exchange): string[] {
      const operation = find(method, url);
      if (!operation && new URL(url).pathname.startsWith(`${authPath}/`)) return [];
      const { headers, responses } = document.components;
      const answers = operation?.responses ?? (NOBODYS.includes(status) ? responses : {});
      const response = answers[status];
      if (!response) return [`nothing is described at ${url} that answers ${status}`];
      const { headers: described = {}, content } = resolve(response, responses);
      const undescribed = Object.values(HEADER).filter((name) => sent.has(name) && !(name in described));
      const found = undescribed.map((name) => `the header ${name} is not described`);
      for (const [name, header] of Object.entries(described)) {
        const { required, schema } = resolve(header, headers);
        const text = sent.get(name);
        const value = schema.type === 'string' ? text : Number(text || 'none');
        if (text !== null) found.push(...check(schema, value, `the header ${name}`));
        else if (required) found.push(`the header ${name} is missing`);
      }
      const [type, media] = Object.entries(content ?? {})[0] ?? [];
      if (method === 'HEAD' || !media) return found;
      if (sent.get('content-type')?.split(';', 1)[0] !== type) return [...found, `it is no ${type}`];
      if (type === 'application/json') found.push(...check(media.schema, parsed(body), 'the body'));
      return found;
    },

    /** All that is not as it is described in the JSON text of a body that was taken. */
    bodyProblems(method: string, url: string, sent: string): string[] {
      const described = find(method, url)?.requestBody?.content?.['application/json'];
      return described ? check(described.schema, parsed(sent), 'the body') : [];
    },
  };
}

const descriptions = new Map<string, ReturnType<typeof describedBy>>();

/** The description of a sandbox with these options; it is compiled once for every sandbox of this process. */
export function descriptionOf(options: SandboxOptions = {}) {
  const key = JSON.stringify([options.guards, options.readings]);
  const made = descriptions.get(key) ?? describedBy(options);
  descriptions.set(key, made);
  return made;
}

const wrong: string[] = [];

afterEach(() => {
  expect(wrong.splice(0), 'answers that are not as the description says').toEqual([]);
});

/**
 * A sandbox of which every answer must be as the description says; the test fails otherwise. Answers that an ordered
 * fault replaces are left out.
 *
 * @param furtherTiers of guards that the test adds: the service that is described does not have them
 */
export function createCheckedSandbox(
  options: SandboxOptions = {},
  furtherTiers: readonly string[] = [],
): Promise<Sandbox> {
  const description = descriptionOf(options);
  return createSandbox({
    ...options,
    onAnswer({ method, url, answer: { status, headers, body } }) {
      const checked = new Headers(headers);
      if (furtherTiers.includes(checked.get(HEADER.tier) ?? '')) checked.delete(HEADER.tier);
      const problems = description.problems({ method, url, status, headers: checked, body: String(body) });
      if (problems.length > 0) wrong.push(`${method} ${url} (${status}): ${problems.join('; ')}`);
    },
  });
}
