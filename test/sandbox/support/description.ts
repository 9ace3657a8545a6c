import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { GUARDS, type GuardRules } from '../../../src/contract/guards.ts';
import { HEADER } from '../../../src/contract/headers.ts';
import { SANDBOX_DEFAULTS } from '../../../src/contract/sandbox.ts';
import { describeService } from '../../../src/sandbox/openapi/describe-service.ts';
import type { Readings, SandboxOptions } from '../../../src/sandbox/types.ts';

/** An answer, and what was asked. */
export interface Exchange {
  method: string;
  /** Full URL. */
  url: string;
  status: number;
  headers: Headers;
  body: string;
}

interface Reference {
  $ref?: string;
}

interface ResponseObject {
  headers?: Record<string, Reference>;
  content?: Record<string, { schema: object }>;
}

interface HeaderObject {
  required?: boolean;
  schema: { type?: string };
}

interface OperationObject {
  operationId: string;
  requestBody?: { content: Record<string, { schema: object }> };
  responses: Record<string, ResponseObject & Reference>;
}

interface Found {
  pointer: string;
  operation: OperationObject;
}

type Json = Record<string, unknown>;

/** What a path gets that is nobody's, or not with this method. */
const NOBODYS: Record<number, string> = {
  401: 'Unauthorized',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  429: 'TooManyRequests',
};

const KEY = 'description';
const JSON_TYPE = 'application/json';

function step(part: string): string {
  return part.replaceAll('~', '~0').replaceAll('/', '~1');
}

function pathPattern(path: string): RegExp {
  return new RegExp(`^${path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{\w+\}/g, '[^/]+')}$`);
}

function isBelow(url: string, area: string): boolean {
  return new URL(url).pathname.startsWith(`${area}/`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The description, ready to hold answers against. What is compiled once serves every sandbox of this process. */
export class Description {
  readonly #document: Json;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  readonly #compiled = new Map<string, ValidateFunction>();
  readonly #paths: { area: string; path: string; pattern: RegExp; methods: Json }[];

  constructor(guards: GuardRules, readings: Readings) {
    const { apiPath, authPath } = SANDBOX_DEFAULTS;
    const document = describeService('http://127.0.0.1', { guards, readings });
    this.#document = document as unknown as Json;
    formats.default(this.#ajv);
    this.#ajv.addSchema(this.#document, KEY);
    this.#paths = Object.entries(document.paths)
      .map(([path, methods]) => ({
        area: 'servers' in methods ? authPath : apiPath,
        path,
        pattern: pathPattern(path),
        methods: methods as Json,
      }))
      .toSorted((one, other) => one.path.split('{').length - other.path.split('{').length);
  }

  /** The operation's name; undefined for a request that none is described for. */
  operationOf(method: string, url: string): string | undefined {
    return this.#find(method, url)?.operation.operationId;
  }

  /** All that is not as it is described in an answer; none when all is well. */
  problems(exchange: Exchange): string[] {
    const { method, url, status } = exchange;
    const found = this.#find(method, url);
    if (found === undefined) {
      if (isBelow(url, SANDBOX_DEFAULTS.authPath)) return [];
      const error = NOBODYS[status];
      return error === undefined
        ? [`nothing is described at ${method} ${new URL(url).pathname}, and it answers ${status}`]
        : this.#answerProblems(`/components/responses/${error}`, exchange);
    }
    const { pointer, operation } = found;
    if (operation.responses[status] === undefined) return [`${operation.operationId} answers ${status}`];
    return this.#answerProblems(`${pointer}/responses/${status}`, exchange);
  }

  /** All that is not as it is described in a body that was taken; `sent` is its JSON text. */
  bodyProblems(method: string, url: string, sent: string | undefined): string[] {
    const found = this.#find(method, url);
    if (found?.operation.requestBody?.content[JSON_TYPE] === undefined || !sent) return [];
    const pointer = `${found.pointer}/requestBody/content/${step(JSON_TYPE)}/schema`;
    return this.#schemaProblems(pointer, parsed(sent), 'the body');
  }

  #find(method: string, url: string): Found | undefined {
    const { pathname } = new URL(url);
    const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
    for (const { area, path, pattern, methods } of this.#paths) {
      if (!pathname.startsWith(`${area}/`) || !pattern.test(pathname.slice(area.length))) continue;
      const operation = methods[verb];
      if (operation !== undefined) {
        return { pointer: `/paths/${step(path)}/${verb}`, operation: operation as OperationObject };
      }
    }
    return undefined;
  }

  #answerProblems(pointer: string, { method, headers, body }: Exchange): string[] {
    const at = this.#resolve(pointer);
    const response = this.#at(at) as ResponseObject;
    const problems = this.#headerProblems(at, response, headers);
    const [type] = Object.keys(response.content ?? {});
    if (method === 'HEAD' || type === undefined) return problems;
    if (headers.get('content-type')?.split(';', 1)[0] !== type) return [...problems, `it is no ${type}`];
    if (type !== JSON_TYPE) return problems;
    const schema = `${at}/content/${step(JSON_TYPE)}/schema`;
    const value = parsed(body);
    return value === undefined
      ? [...problems, `the body is no ${type}`]
      : [...problems, ...this.#schemaProblems(schema, value, 'the body')];
  }

  #headerProblems(at: string, response: ResponseObject, headers: Headers): string[] {
    const described = Object.keys(response.headers ?? {});
    const undescribed = Object.values(HEADER).filter(
      (name) => headers.has(name) && !described.includes(name),
    );
    return [
      ...undescribed.map((name) => `the header ${name} is not described`),
      ...described.flatMap((name) => {
        const pointer = this.#resolve(`${at}/headers/${name}`);
        const { required, schema } = this.#at(pointer) as HeaderObject;
        const text = headers.get(name);
        if (text === null) return required === true ? [`the header ${name} is missing`] : [];
        const value = schema.type === 'string' ? text : Number(text === '' ? Number.NaN : text);
        return this.#schemaProblems(`${pointer}/schema`, value, `the header ${name}`);
      }),
    ];
  }

  #schemaProblems(pointer: string, value: unknown, what: string): string[] {
    const validate = this.#validator(pointer);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message }) => `${what}${instancePath} ${message}`);
  }

  #validator(pointer: string): ValidateFunction {
    const known = this.#compiled.get(pointer);
    if (known !== undefined) return known;
    const validate = this.#ajv.compile({ $ref: `${KEY}#${encodeURI(pointer)}` });
    this.#compiled.set(pointer, validate);
    return validate;
  }

  /** Where a pointer leads in the end. */
  #resolve(pointer: string): string {
    const { $ref } = this.#at(pointer) as Reference;
    return $ref === undefined ? pointer : this.#resolve($ref.slice(1));
  }

  #at(pointer: string): unknown {
    const steps = pointer.split('/').slice(1);
    return steps.reduce<unknown>(
      (value, part) => (value as Json)[part.replaceAll('~1', '/').replaceAll('~0', '~')],
      this.#document,
    );
  }
}

const descriptions = new Map<string, Description>();

/** The description of a sandbox with these guards and readings. */
export function descriptionOf({
  guards,
  readings,
}: Pick<SandboxOptions, 'guards' | 'readings'> = {}): Description {
  const key = JSON.stringify([guards, readings]);
  const all: Readings = { expiresAt: 'string', changes: 200, ...readings };
  const made = descriptions.get(key) ?? new Description({ ...GUARDS, ...guards }, all);
  descriptions.set(key, made);
  return made;
}
