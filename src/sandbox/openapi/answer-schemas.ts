import { z } from 'zod';
import { ROUTES } from '../../contract/api/api.ts';
import * as contract from '../../contract/api/schemas.ts';
import { type JsonSchema, pascalCase, refer } from './parts.ts';

const BODIES = new Set<unknown>(ROUTES.map(([, { body }]) => body));

/** Schemas of answers go by the contract's name; one that a route alone knows goes by its operation. */
const NAMES = z.registry<{ id: string }>();
for (const [name, schema] of [
  ...Object.entries<unknown>(contract),
  ...ROUTES.map(([operation, { answer }]) => [`${operation}Answer`, answer] as const),
]) {
  if (!(schema instanceof z.ZodType) || BODIES.has(schema) || NAMES.has(schema)) continue;
  NAMES.add(schema, { id: pascalCase(name) });
}

/** Refers to the schema of an answer. */
export function answerSchema(schema: z.ZodType) {
  return refer('schemas', NAMES.get(schema)?.id ?? '');
}

/** The schemas of all answers in JSON Schema, by name. */
export function answerSchemas(): Record<string, JsonSchema> {
  const { schemas } = z.toJSONSchema(NAMES, {
    io: 'output',
    unrepresentable: 'any',
    uri: (name) => refer('schemas', name).$ref,
  });
  return Object.fromEntries(
    Object.entries(schemas).map(([name, { $id, $schema, ...schema }]) => [name, schema as JsonSchema]),
  );
}
