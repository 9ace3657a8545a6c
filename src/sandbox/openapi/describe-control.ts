import type { ControlCall } from '../control/control.ts';
import type { Route } from '../http/router.ts';
import {
  content,
  ERROR_SCHEMA,
  pascalCase,
  pathItems,
  pathParameters,
  refer,
  requestBody,
  sentSchema,
} from './parts.ts';

function queryParameters({ sent }: ControlCall): object[] {
  const { properties = {} } = sentSchema(sent);
  return Object.entries(properties as object).map(([name, schema]) => ({ name, in: 'query', schema }));
}

function operation({ method, path, handle }: Route<ControlCall>): object {
  const { summary, sent, status, answers } = handle;
  const object = { type: 'object', ...(answers && { required: answers }) };
  const answer = answers ? object : { type: 'array', items: object };
  return {
    operationId: method.toLowerCase() + pascalCase(path),
    summary,
    parameters: [...pathParameters(path), ...(method === 'POST' ? [] : queryParameters(handle))],
    ...(method === 'POST' && { requestBody: requestBody(sent) }),
    responses: {
      [status]: { description: 'Done.', content: content(answer) },
      '4XX': refer('responses', 'Error'),
    },
  };
}

/** The control interface in OpenAPI 3.1, from the table that it runs on. @param url where it was reached */
export function describeControl(calls: readonly Route<ControlCall>[], url: string) {
  const summary = 'How tests control the sandbox; the service has a description of its own.';
  const error = { description: 'It cannot be done.', content: content(refer('schemas', 'Error')) };
  return {
    openapi: '3.1.1',
    info: { title: 'Control of the sandbox', summary, version: '1.0.0' },
    servers: [{ url }],
    paths: pathItems(calls, operation),
    components: { schemas: { Error: ERROR_SCHEMA }, responses: { Error: error } },
  };
}
