import type { Dispatcher } from 'undici';

/**
 * How long a request may wait for a new connection, in milliseconds. What it is sent for may be over by then, as a company
 * was disconnected: who sends it looks again, and the connection stands.
 */
export const CONNECTION_MS = 250;

/** The request was not sent: its connection came about late. */
export class LateConnectionError extends Error {
  constructor() {
    super('The request was not sent: it had to wait for its connection for too long.');
    this.name = 'LateConnectionError';
  }
}

/** Has a request sent only on a connection that comes about soon; a later one is kept for the next request. */
export const unlessLate: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
  const connectedBy = performance.now() + CONNECTION_MS;
  const start = handler.onRequestStart?.bind(handler);
  // Called when there is a connection, right before the request is written. Thrown, as undici ends the connection of what
  // is aborted.
  handler.onRequestStart = (controller, context) => {
    if (performance.now() > connectedBy) throw new LateConnectionError();
    start?.(controller, context);
  };
  return dispatch(options, handler);
};
