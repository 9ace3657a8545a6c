-- The rate budget of one company: one script decides, for every process, when a request may go. It reads the state,
-- asks the functions of timing.lua and pacing.lua, which stand before it, and writes the state.
--
-- KEYS[1] string, JSON: the state; what the service's answers said about the current window, first
--   end       our moment of the window's end, in ms of the company's clock; beyond it nothing is known
--   reset     the service's moment of it, in ms: names the window, so that late answers are told apart
--   remaining the limit less the most that this window's answers said is used, and less what was lost since
--   limit, burst   as last said; limit_at: since when
--   since, told    when this window came into sight; when the last answer about it came
--   answered  when the latest request went of those that were answered
--   ours, at_first, others   how many requests of ours this window may count; how many that are not ours it had counted
--             when it came into sight; how many more since
--   turned    how often of late a window came into sight while another one was to last on; turned_at: the last time
--   short     how many answers since tally_at did not show in what is told to be used; said: what is, so far
--   apart     when that last was so: it is another limit that is told of; heard: answers since
--   doubted_at     when the service still named a window after the end that it had told; still: how often, of the present one
--   overrun   how long windows last beyond the end that is told
--   trip      the usual time from permit to answer, in ms
--   flight    permits in flight: when the lease of each ends
--   blocked   until when the service wants no request of the company
--   blocks    until when it wants none of a bucket, or of a route
--   refused   refusals in a row
--   well      when an answer came last that wants no wait; troubles: of each route, when trouble there came last
--   first, last    of the busy stretch: when its first and its latest request went (that no known guard counts)
--   passed    of each route: the stretch that its count belongs to, and how many of its requests passed
--   paced     when a guard refused that we know nothing of, if one did
--   probe     the one permit out while nothing is known; probe_at: since when
--   seen, ahead    the company's clock: its last reading, and how far it is ahead of Redis', in ms
--   silent_at      when KEYS[2] got its latest member
--   counted_at     when KEYS[5] was last cleared of what is over
-- KEYS[2] sorted set: permits that ended without a word about the limit, by the moment at which they did
-- KEYS[3] sorted set: requests in the bucket of a guard, by the moment at which they were answered; those that were
--         not, by the end of their lease
-- KEYS[4] hash: the pace of the routes of which we know no guard
--   refused_at, hold    the last refusal; when the guard said that it would let requests through again
--   catch_up            the shortest distance between requests in what is left of the window of the first refusal
--   from, to, taught    what a pace was learned from: requests sent from when to when (not of one that was refused
--             again); how long the guard took for them
--   `last <route>`, `gap <route>`, `passed <route>`   its latest request; its pace, and the count that this rests on
--   `went <route>`, `floor <route>`   the distance that this one kept; a distance that was too short, and more
-- KEYS[5] sorted set: the requests of the contract's window that ended, like KEYS[3] for the others; they decide, with
--         those in flight, while nothing that is told tells of our limit
-- KEYS[6] string, one for all companies: since when the buckets of guards are counted without a gap, in ms of Redis' clock
--
-- ARGV: settle permit, outcome ('' | answered | bare | refused | lost | unsent), limit, remaining, reset, ends in,
--       burst remaining, block for, what for ('' | company | bucket | request | trouble), how long ago the answer came,
--       acquire permit (empty: none), lease, window and limit of the contract, permits kept for people,
--       the bucket's limit (empty: there is no bucket) and window, '1' if that limit is a share of the rate limit, route,
--       the share of the limit that is left to the sync, what the bucket's block is named by,
--       how long ago the asking process last had to do with what may leave a gap in what is counted
--
-- Times and waits are whole milliseconds, waits rounded up: a number that Lua returns is cut.

local KEEP_MS = 30 * 60 * 1000 -- how long an idle company's budget is kept, if no guard's block lasts longer
local UNASKED = 'none' -- the permit of a request for which nobody asked
local OF_CALLS = ':calls:' -- stands in the names of permits for calls of the handler
local TROUBLE_MS = 60 * 1000 -- how long the company waits at the most for what may be the trouble of one route
local CLEAR_MS = 60 * 1000 -- how often our own count is cleared of what is over

local state, unheard, bucket, paces, counted, counting = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local lease, window, most = tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14])
local guarded, route, block_name = ARGV[16] ~= '', ARGV[19], ARGV[21]
local guard_window = guarded and tonumber(ARGV[17])

-- One value: it is read and written whole at every call. What another version of the app keeps in it stays.
local s = cjson.decode(redis.call('GET', state) or '{}')
s.flight, s.blocks, s.passed, s.troubles = s.flight or {}, s.blocks or {}, s.passed or {}, s.troubles or {}
local flight, in_flight = s.flight, 0
for _ in pairs(flight) do in_flight = in_flight + 1 end

local time = redis.call('TIME')
local redis_now = time[1] * 1000 + math.ceil(time[2] / 1000)
local now, ahead = timing.clock(redis_now, s.ahead or 0, s.seen)
s.seen, s.ahead = now, ahead > 0 and ahead or nil

local function land(permit)
  flight[permit], in_flight = nil, in_flight - 1
end

local function known() return s['end'] ~= nil and now < s['end'] end

-- Two windows take turns, or the end of one moves on with every answer.
local function take_turns() return timing.take_turns(s.turned, s.turned_at, now) end

-- Whether the end of a window that is told is not to be believed: of one that is still named after it, or of any when it
-- has passed, as long as that may be the service's habit.
local function is_end_doubted()
  return s.doubted_at ~= nil and now - s.doubted_at <= KEEP_MS and (s.still ~= nil or not known())
end

-- Whether nothing that is told says when our limit begins anew: then no contract's window may hold more than it.
-- A window without a name is one that we took for begun, as nothing was told.
local function is_on_our_own()
  return s.apart ~= nil or take_turns() or is_end_doubted() or (s['end'] ~= nil and s.reset == nil)
end

-- Redis may have gone back to an older state since, or its clock may have been set.
local gap_at = now - tonumber(ARGV[22])

-- Whether no request that went since then was answered: what is known of the window may be too good.
local function is_stale() return (s.answered or 0) < gap_at end

-- Whether what is told to be used rises with our requests: `used` after one more of them.
local function tally(used, which)
  if not timing.tally_goes_on(s.tally_at, now, window) then s.short, s.tally_at = -in_flight, now end
  local rise, said = timing.rise(used, s.said or 0, which)
  s.short, s.said = timing.short_by(s.short, rise, in_flight), said
  if timing.is_short(s.short, in_flight) then
    s.apart, s.heard, s.short = now, 0, -in_flight
  elseif s.apart then
    s.heard = s.heard + 1
    if timing.is_trusted(s.heard, s.apart, now, window) then s.apart, s.heard = nil, nil end
  end
end

-- Also what lies further ahead than any lease ends: Redis' clock was set back since, and longer ago than we know of.
local function clear_bucket(set, span)
  redis.call('ZREMRANGEBYSCORE', set, '-inf', now - span - 1)
  return redis.call('ZREMRANGEBYSCORE', set, now + lease + 1, '+inf')
end

-- Out of our own count goes what is over; what is left is forgotten with the rest.
local function clear_count()
  clear_bucket(counted, window)
  s.counted_at = redis.call('PEXPIRE', counted, KEEP_MS) == 1 and now or nil
end

-- One more in our own count.
local function count(permit, at)
  redis.call('ZADD', counted, at, permit)
  if not s.counted_at or now - s.counted_at >= CLEAR_MS then clear_count() end
end

-- Answers to earlier requests may tell of a window in which this one counts, too.
local function silent(permit)
  redis.call('ZREMRANGEBYSCORE', unheard, '-inf', now - lease)
  redis.call('ZADD', unheard, now, permit)
  redis.call('PEXPIRE', unheard, KEEP_MS)
  s.silent_at = now
end

-- The request may have been sent, so it counts as spent; `over_at`: when its lease ends, or did.
local function spend(permit, over_at)
  count(permit, over_at)
  silent(permit)
  if known() then s.remaining = s.remaining - 1 end
end

-- A bucket holds the requests on their way, and those that were answered within its window.
local function enter_bucket(set, permit)
  redis.call('ZADD', set, now + lease, permit)
end

-- One that got no answer keeps its place until its lease ends: the service may count it yet.
local function leave_bucket(set, permit, outcome)
  if outcome == 'unsent' then
    redis.call('ZREM', set, permit)
  elseif outcome ~= 'lost' then
    redis.call('ZADD', set, 'XX', now, permit)
  end
end

-- How long the buckets of guards have been counted without a gap. A Redis that was emptied says nothing of it.
local function counted_for()
  local since, gap = tonumber(redis.call('GET', counting) or ''), redis_now - tonumber(ARGV[22])
  if since and since >= gap and since <= redis_now then return redis_now - since end
  since = since and since < gap and gap or redis_now
  redis.call('SET', counting, string.format('%.0f', since))
  return redis_now - since
end

local function wait_for_place(set, allowed, span)
  if clear_bucket(set, span) > 0 then redis.call('DEL', counting) end
  local over = redis.call('ZCARD', set) - allowed
  if over < 0 then return 0 end
  local leaves = redis.call('ZRANGE', set, over, over, 'WITHSCORES')[2]
  return timing.guard_wait(tonumber(leaves), span, now)
end

-- How long until the contract's window holds one fewer, by our own count, if it holds as many as are allowed: of those
-- permits in whose names `whose` stands.
local function wait_for_own_place(allowed, whose)
  clear_count()
  local ended, flying = {}, 0
  local members = redis.call('ZRANGE', counted, 0, -1, 'WITHSCORES')
  for index = 1, #members, 2 do
    if string.find(members[index], whose, 1, true) then ended[#ended + 1] = tonumber(members[index + 1]) end
  end
  for permit in pairs(flight) do
    if string.find(permit, whose, 1, true) then flying = flying + 1 end
  end
  local over = #ended + flying - allowed
  if over < 0 then return 0 end
  return timing.guard_wait(ended[over + 1] or now, window, now)
end

-- Whether trouble is this route's alone: since it was there before, others were answered well.
local function is_of_route()
  local before = s.troubles[route]
  for name, at in pairs(s.troubles) do
    if now - at > KEEP_MS then s.troubles[name] = nil end
  end
  s.troubles[route] = now
  return before ~= nil and s.well ~= nil and s.well > before
end

-- The company is to wait until then; or a bucket or route.
local function block_company(until_at) s.blocked = math.max(s.blocked or 0, until_at) end

local function block_only(name, until_at)
  for other, over_at in pairs(s.blocks) do
    if over_at <= now then s.blocks[other] = nil end
  end
  s.blocks[name] = math.max(s.blocks[name] or 0, until_at)
end

-- How long the state is kept if nobody asks for a permit.
local function kept_for()
  local longest = KEEP_MS
  for _, until_at in pairs(s.blocks) do longest = math.max(longest, until_at - now) end
  return string.format('%.0f', longest)
end

-- What an answer says about the window; `missed` requests may have been counted after it.
local function hear(sent, missed, held)
  local full, remaining, reset, ends_in = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
  -- The contract's limit is the ceiling, whatever more the service would allow.
  local used, limit = full - remaining, math.min(full, most)
  local heard_at = math.max(sent, now - tonumber(ARGV[10]))
  local which = timing.window_of(reset, s.reset, known(), s['end'], s.since, sent)
  local names_known = timing.is_same(reset, s.reset)
  local is_over = not known() and which == 'new' and names_known
  if is_over then
    local refused_for = ARGV[9] == 'company' and remaining <= 0 and tonumber(ARGV[8]) or 0
    local until_at = refused_for > 0 and heard_at + refused_for or sent
    s.overrun = timing.overrun(s.overrun, s.doubted_at, heard_at, s['end'], until_at, window)
    s.doubted_at = now
    ends_in = timing.lasts_still(ends_in, refused_for, window, remaining <= 0, s.still or 0)
  elseif s.doubted_at and now - s.doubted_at > KEEP_MS then
    s.doubted_at, s.overrun = nil, nil
  end
  if not is_over then ends_in = timing.lasts(ends_in, s.overrun, window) end
  if held then s.trip = timing.usual_trip(s.trip, heard_at - sent) end
  if held and tonumber(ARGV[8]) == 0 and (which ~= 'old' or names_known) then tally(used, which) end
  -- A window that comes into sight by somebody else's answer begins anew, too.
  if not held and which == 'new' then s.said = math.min(s.said or 0, used) end
  if which == 'old' then
    -- Should the service's clock have been set back, it may be the new window's after all.
    if held then
      silent(ARGV[1])
      if s.ours and not names_known then s.ours = s.ours - 1 end
    end
    return
  end
  if which == 'same' and known() then
    if not held then s.ours = s.ours + 1 end
    local before = s.limit
    s.limit, s.remaining = timing.merge(s.limit, s.remaining, s.limit_at, limit, used + missed, sent)
    if s.limit ~= before then s.limit_at = now end
    if not take_turns() then s['end'] = timing.end_of(s['end'], sent, ends_in, heard_at, window) end
    s.others = math.max(s.others, timing.others(used, s.ours, s.at_first))
  else
    local is_early = timing.is_early(s['end'], heard_at)
    if is_early then s.turned, s.turned_at = timing.turned(s.turned, s.turned_at, now) + 1, now end
    s.limit, s.remaining, s.limit_at = limit, limit - used - missed, now
    s.reset, s['end'], s.since = reset, heard_at + ends_in, now
    s.still = is_over and (s.still or 0) + 1 or nil
    s.ours = math.max(in_flight + missed + 1, is_early and s.ours or 0)
    s.at_first, s.others = timing.others(used, s.ours, 0), 0
  end
  s.told = math.max(s.told or 0, heard_at)
  if ARGV[7] ~= '' then s.burst = tonumber(ARGV[7]) end
end
