/** Body of every API error (Errors; for other statuses than 429 our choice is the same object). */
export interface ErrorBody {
  _error: { status: number; title: string; message: string };
}
