import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import * as accounts from '../../contract/api/accounts.ts';
import * as analytics from '../../contract/api/analytics.ts';
import { ROUTES } from '../../contract/api/api.ts';
import * as applications from '../../contract/api/applications.ts';
import * as channels from '../../contract/api/channels.ts';
import * as common from '../../contract/api/common.ts';
import * as contacts from '../../contract/api/contacts.ts';
import * as conversations from '../../contract/api/conversations.ts';
import * as identity from '../../contract/api/identity.ts';
import * as inboxes from '../../contract/api/inboxes.ts';
import * as knowledgeBases from '../../contract/api/knowledge-bases.ts';
import * as links from '../../contract/api/links.ts';
import * as messages from '../../contract/api/messages.ts';
import * as responses from '../../contract/api/responses.ts';
import * as tags from '../../contract/api/tags.ts';
import * as teammates from '../../contract/api/teammates.ts';
import { pascalCase } from './names.ts';

/** A schema in JSON Schema, draft 2020-12. */
export type JsonSchema = Record<string, unknown>;

const FAMILIES: readonly Readonly<Record<string, unknown>>[] = [
  common,
  identity,
  contacts,
  conversations,
  messages,
  tags,
  accounts,
  channels,
  inboxes,
  links,
  responses,
  teammates,
  knowledgeBases,
  analytics,
  applications,
];

type Names = ReturnType<typeof z.registry<{ id: string }>>;

/** Every schema that the contract exports under its own name; what a route alone knows goes by its operation. */
function nameSchemas(): Names {
  const names: Names = z.registry<{ id: string }>();
  const add = (schema: unknown, id: string) => {
    if (schema instanceof z.ZodType && !names.has(schema)) names.add(schema, { id });
  };
  for (const family of FAMILIES) {
    for (const [name, exported] of Object.entries(family)) add(exported, pascalCase(name));
  }
  for (const [operation, { body, answer }] of ROUTES) {
    add(body, `${pascalCase(operation)}Body`);
    add(answer, `${pascalCase(operation)}Answer`);
  }
  return names;
}

/** Where a schema stands in the description. */
function pointer(name: string): string {
  return `#/components/schemas/${name}`;
}

/** @param io `input`: what is sent; `output`: what is answered */
function convert(names: Names, io: 'input' | 'output'): Record<string, JsonSchema> {
  const { schemas } = z.toJSONSchema(names, { io, uri: pointer, unrepresentable: 'any' });
  return Object.fromEntries(
    Object.entries(schemas).map(([name, { $id, $schema, ...schema }]) => [name, schema as JsonSchema]),
  );
}

/** The names of these schemas and of all that they refer to. */
function closure(schemas: Record<string, JsonSchema>, names: Iterable<string>): Set<string> {
  const found = new Set<string>();
  const visit = (name: string) => {
    if (found.has(name)) return;
    found.add(name);
    for (const [, next = ''] of JSON.stringify(schemas[name]).matchAll(/#\/components\/schemas\/(\w+)/g))
      visit(next);
  };
  for (const name of names) visit(name);
  return found;
}

/** The contract's schemas in JSON Schema, and by which name each is referred to. */
export interface Schemas {
  components: Record<string, JsonSchema>;
  refer(schema: z.ZodType): { $ref: string };
}

/**
 * Turns the schemas of all routes into JSON Schema. One that is sent and answered must read the same both ways; else it
 * throws an Error, and the contract has to name two.
 */
export function contractSchemas(): Schemas {
  const names = nameSchemas();
  const nameOf = (schema: z.ZodType) => names.get(schema)?.id ?? '';
  const bodies = ROUTES.flatMap(([, { body }]) => (body === undefined ? [] : [nameOf(body)]));
  const answers = ROUTES.map(([, { answer }]) => nameOf(answer));
  const [sent, answered] = [convert(names, 'input'), convert(names, 'output')];
  const components: Record<string, JsonSchema> = {};
  for (const name of closure(answered, [...answers, pascalCase('acceptedMessage')])) {
    components[name] = answered[name] ?? {};
  }
  for (const name of closure(sent, bodies)) {
    const schema = sent[name] ?? {};
    const other = components[name];
    if (other !== undefined && !isDeepStrictEqual(other, schema)) {
      throw new Error(`${name} is sent in another form than it is answered in: it needs two names`);
    }
    components[name] = schema;
  }
  return { components, refer: (schema) => ({ $ref: pointer(nameOf(schema)) }) };
}
