-- When a request may go: numbers in, numbers out. Nothing here knows of Redis; times and spans are milliseconds.

local SAME_WINDOW_MS = 1500    -- resets of one window may differ by rounding
local CUT_MS = 1000            -- by which the whole seconds of a `Date` are late at most
local HIDDEN_MS = 2000         -- what whole seconds hide: a second of `Date`, and a second of `x-ratelimit-reset`
local EARLY_MS = 3000          -- a window that is named so long before the end of the known one is hardly the next
local DOUBT_MS = 180000        -- what windows do twice within so long is the service's habit
local SHORT = 8                -- so many of our answers that did not show in what is told to be used are no accident
local TRUSTED = 40             -- after so many answers that did, it is believed again
local RELEASE_MS = 3000        -- what is kept for others goes to anybody so long before the window's end
local KEPT_OF = 20             -- of so many permits at least, one may be kept
local HELD_OF = 10             -- of so many permits at most one is held back for another consumer
local SHORTEST_PAUSE_MS = 2    -- how soon to ask again while an answer is under way that will tell more, at first
local LONGEST_ASKING_MS = 50   -- and in the end
local ROLLED_OF = 60           -- of so many permits of the window before, one may go before the new one is known
local PROBE_PATIENCE_MS = 2000 -- a probe without an answer for so long (or four usual ones) may be dead: another goes
local FIRST_BLOCK_MS = 50      -- the shortest block after a refusal; it doubles with every further one in a row
local LONGEST_BLOCK_MS = 30000 -- and ends here, unless the service asks for more
local TRIP_WEIGHT = 1 / 8      -- of a new answer in the usual time from permit to answer

local timing = {}

-- Redis' clock may be set back; the company's own never runs backwards: what it missed is added from then on.
function timing.clock(redis_now, ahead, seen)
  local now = redis_now + ahead
  if seen ~= nil and now < seen then return seen, ahead + seen - now end
  return now, ahead
end

function timing.is_same(reset, known_reset)
  return known_reset ~= nil and math.abs(reset - known_reset) <= SAME_WINDOW_MS
end

-- Which window an answer tells of: 'same' as the known one, 'new', or 'old'. A reset before the known one is an older
-- window's, unless the request went after the known one was heard of: then the service's clock was set back.
-- The known name again, to a request that went after we thought its window over: its time was not over.
function timing.window_of(reset, known_reset, known, is_over_at, since, sent)
  if known_reset == nil or reset > known_reset + SAME_WINDOW_MS then return 'new' end
  if reset < known_reset - SAME_WINDOW_MS then return sent > (since or 0) and 'new' or 'old' end
  if known then return 'same' end
  return sent >= (is_over_at or 0) and 'new' or 'old'
end

-- Limit and permits left after one more answer about the same window: the most that any answer says is used counts, in
-- whatever order they come. A higher limit is believed of a request that went after the present one was heard of.
function timing.merge(limit, remaining, limit_at, said_limit, said_used, sent)
  local used = math.max(limit - remaining, said_used)
  local present = said_limit
  if said_limit > limit and sent <= limit_at then present = limit end
  return present, present - used
end

-- The window's end after one more answer. Each shows it too late (what whole seconds hide, and the way back), so the
-- earliest counts; one that is earlier than this answer can be true at all was seen by a clock that has been set since.
function timing.end_of(known_end, sent, ends_in, now, window)
  local ends_at = now + ends_in
  if ends_in < window and known_end < sent + ends_in - HIDDEN_MS then return ends_at end
  return math.min(known_end, ends_at)
end

-- Whether a new window comes into sight while the known one was to last on: there may be two that take turns, or one
-- whose end moves on with every answer; or a clock was set.
function timing.is_early(known_end, now)
  return known_end ~= nil and known_end - now > EARLY_MS
end

-- How often of late that was so.
function timing.turned(turned, turned_at, now)
  return turned_at ~= nil and now - turned_at <= DOUBT_MS and turned or 0
end

-- Twice is no accident.
function timing.take_turns(turned, turned_at, now)
  return timing.turned(turned, turned_at, now) > 1
end

-- By how much what is told to be used rose with an answer, and what to compare the next one with. A new window begins
-- anew; that its name is new alone shows nothing.
function timing.rise(used, said, which)
  if which == 'new' and used <= said then return used < said / 2 and used or 0, used end
  return math.max(0, used - said), math.max(used, said)
end

-- How many of our answers did not show in what is told to be used, after one more that it rose with. What rose beyond
-- those that are under way was somebody else's, and makes up for none of ours.
function timing.short_by(short, rise, in_flight)
  return math.max(-in_flight, short + 1 - math.min(rise, 1 + in_flight))
end

-- A few answers a window tell nothing: they are counted anew after each. Those under way may be shown already.
function timing.tally_goes_on(tally_at, now, window)
  return tally_at ~= nil and now - tally_at <= window
end

function timing.is_short(short, in_flight)
  return short > SHORT + in_flight
end

-- Whether it is believed again that our requests are counted: they have shown for so long, and others' may be as many.
function timing.is_trusted(heard, apart, now, window)
  return heard >= TRUSTED and now - apart > window
end

-- No window is longer than the contract's; whole seconds hide one.
function timing.lasts(ends_in, overrun, window)
  return overrun and math.max(ends_in, math.min(ends_in + overrun, window + 1000)) or ends_in
end

-- Of a window that should have been over: as long as it refuses. A whole window more means that the end lies before the
-- `Date` of the answer: then it is looked at again soon. When nothing is left of it, that is a request too many each time: so
-- ever less often; `times` says how often it was named after its end.
function timing.lasts_still(ends_in, refused_for, window, is_used_up, times)
  if refused_for > 0 then return refused_for end
  local soon = ends_in >= window and CUT_MS or ends_in
  return is_used_up and math.max(soon, math.min(CUT_MS * 2 ^ times, window)) or soon
end

-- How long windows last beyond the end that is told: `Date` may come from another clock than the limit's. A window that
-- is still named after its end shows it, if it is not the first one in a while; `until_at` is when it surely lasted.
function timing.overrun(overrun, doubted_at, now, known_end, until_at, window)
  if doubted_at == nil or now - doubted_at > DOUBT_MS then return overrun end
  return math.min((overrun or 0) + until_at - known_end + CUT_MS, window)
end

function timing.usual_trip(trip, this)
  return trip and trip + (this - trip) * TRIP_WEIGHT or this
end

-- Requests of others in this window for sure: used beyond our own, less what was so when the window came into sight.
function timing.others(said_used, ours, at_first)
  return math.max(0, said_used - ours - at_first)
end

-- How many permits to leave to others: as many requests as they will hardly exceed from the last answer until ours
-- arrives, if they go on as they did in the window so far (twice the deviation of a random stream above its mean).
function timing.held_back(others, watched_for, unseen_for, limit)
  if others <= 0 then return 0 end
  local mean = others / math.max(watched_for, 1) * unseen_for
  return math.min(math.max(1, math.ceil(mean + 2 * math.sqrt(mean))), math.max(1, math.floor(limit / HELD_OF)))
end

-- Permits that are kept for people, and the share that calls of the handler leave to the sync.
function timing.kept(left, limit, for_people, share)
  if left <= RELEASE_MS then return 0 end
  return math.min(for_people, math.floor(limit / KEPT_OF)) + math.floor(limit * share)
end

-- Until there may be a permit, when `free` are left of which `kept` are not for us.
function timing.wait_for_limit(free, left)
  return free > 0 and left > RELEASE_MS and left - RELEASE_MS or left
end

-- How soon to ask again while an answer is under way: a quarter of the time that it has been, so that little is lost.
function timing.asking_pause(under_way_for)
  return math.min(math.max(SHORTEST_PAUSE_MS, math.ceil(under_way_for / 4)), LONGEST_ASKING_MS)
end

-- Likewise for a guard's bucket, where dozens may wait for many windows' worth of answers.
function timing.guard_asking_pause(under_way_for)
  return math.max(timing.asking_pause(under_way_for), LONGEST_ASKING_MS)
end

-- How many requests may be under way while nothing is known of the window: one, which finds out. Where a window that
-- the service told of has just ended, the new one's limit is hardly a small part of its: so many begin it together.
function timing.unknown_allows(limit, ended_for, window)
  if not limit or ended_for == nil or ended_for > window then return 1 end
  return math.max(1, math.floor(limit / ROLLED_OF))
end

function timing.probe_is_overdue(out_for, trip)
  return out_for > math.max(PROBE_PATIENCE_MS, 4 * (trip or 0))
end

-- How long until one more request fits into a bucket, where `leaves` is the moment at which the one that has
-- to leave first was answered (in the future: it is on its way still). So many requests as the guard allows may be on
-- their way or answered for less than its window: then no window of the service holds more, fixed or sliding and
-- wherever it begins, as it counts a request between the moments at which it is granted and answered.
-- Whoever asks again after the wait finds the place free, or that the request is on its way still.
function timing.guard_wait(leaves, window, now)
  return math.min(leaves, now) + window + 1 - now
end

function timing.guard_allows(limit, is_share, rate_limit)
  return is_share and math.max(1, math.floor(limit * rate_limit)) or limit
end

function timing.block(asked, refused)
  return math.ceil(math.max(asked, math.min(FIRST_BLOCK_MS * 2 ^ math.min(refused - 1, 20), LONGEST_BLOCK_MS)))
end
