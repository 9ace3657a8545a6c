import type { Request } from 'express';

/**
 * The address of the client, as far as the proxies that are believed tell it. Some write the port of the connection
 * behind it, which is another one each time: a limit must not take that for another client.
 */
export function clientAddress(req: Request): string {
  const told = req.ip ?? '';
  const [, v4, v6] = /^(?:([\d.]+):\d+|\[([\da-f:.]+)\](?::\d+)?)$/i.exec(told) ?? [];
  return v4 ?? v6 ?? told;
}
