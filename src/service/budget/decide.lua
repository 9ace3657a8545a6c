-- Settles one permit and grants the next: the part of the script that runs, after what budget.lua has read and defined.

-- A lease that ran out: its holder died.
for permit, over_at in pairs(flight) do
  if over_at <= now then
    land(permit)
    spend(permit, over_at)
  end
end
if s.probe and (not flight[s.probe] or timing.probe_is_overdue(now - s.probe_at, s.trip)) then
  s.probe = nil
end

local outcome = ARGV[2]
if outcome ~= '' then
  local permit = ARGV[1]
  local over_at = flight[permit]
  local held = over_at ~= nil
  local sent = (over_at or now) - lease
  if held then land(permit) end
  -- Requests that the service may have counted after this one, and that no answer will tell of.
  local missed = s.silent_at and s.silent_at >= sent and redis.call('ZCOUNT', unheard, sent, '+inf') or 0
  local probed = s.probe == permit
  if probed then s.probe = nil end

  if outcome == 'answered' then
    hear(sent, missed, held)
  elseif outcome == 'bare' and probed and not known() then
    -- A service that does not say what is left: of the limit that it tells or has told, or of the contract's, in a
    -- window that starts now. Besides this request it may have counted the one that asked whose token it is. One that
    -- refuses without a word about the limit may be a proxy before it, and says nothing of the kind.
    local full = math.min(tonumber(ARGV[3]) or s.limit or most, most)
    s.ours, s.at_first, s.others = 2 + missed, 0, 0
    s.limit, s.remaining, s.limit_at = full, full - s.ours, now
    s.reset, s['end'], s.since, s.told = nil, now + window, now, now
  elseif held and outcome ~= 'unsent' then
    spend(permit, over_at)
  elseif held and known() then
    s.ours = s.ours - 1
  end

  if guarded then leave_bucket(bucket, permit, outcome) end
  local has_answer = outcome ~= 'lost' and outcome ~= 'unsent'
  if has_answer then
    count(permit, now)
    local went = held and sent or permit == UNASKED and now - tonumber(ARGV[10]) or 0
    s.answered = math.max(s.answered or 0, went)
  end

  local block = tonumber(ARGV[8])
  if block > 0 then
    local kind = ARGV[9]
    local holds_all = kind == 'company' or kind == 'trouble' and not is_of_route()
    local name = kind == 'trouble' and route or block_name
    -- Requests that were on their way together are refused together: that is one refusal.
    local blocked = holds_all and (s.blocked or 0) or s.blocks[name] or 0
    if blocked <= now then s.refused = (s.refused or 0) + 1 end
    local length = timing.block(block, s.refused or 1)
    if holds_all then block_company(now + (kind == 'company' and length or math.min(length, TROUBLE_MS))) end
    if kind ~= 'company' then block_only(name, now + length) end
    if kind == 'bucket' and not guarded then learn_pace(sent, block) end
  elseif has_answer then
    s.refused, s.well = nil, now
    if held and not guarded then count_passed(sent) end
  end
end

local granted, wait, why = 0, 0, ''

-- How long until one more request fits into the guard's bucket. One that has not been counted for a whole window may
-- hold requests that nobody here knows of: so each finds out for the next one, and no more than one is refused.
local function wait_for_guard()
  local wait =
    wait_for_place(bucket, timing.guard_allows(tonumber(ARGV[16]), ARGV[18] == '1', s.limit or most), guard_window)
  if wait > 0 or counted_for() > lease + guard_window then return wait end
  -- One that is on its way, or got no answer, stands there with the end of its lease.
  local latest = redis.call('ZRANGE', bucket, -1, -1, 'WITHSCORES')[2]
  if not latest or tonumber(latest) <= now then return 0 end
  return timing.guard_asking_pause(now - (tonumber(latest) - lease))
end

-- How long until the contract's window holds one fewer, by our own count.
local function wait_for_own_count()
  local limit, left_to_sync = s.limit or most, tonumber(ARGV[20])
  local allowed = math.max(1, limit - timing.kept(window, limit, tonumber(ARGV[15]), 0))
  local wait = wait_for_own_place(allowed, '')
  if left_to_sync == 0 then return wait end
  -- Of what is left to it, the sync takes as much as comes first: so the calls are counted by themselves.
  return math.max(wait, wait_for_own_place(math.max(1, math.floor(allowed - limit * left_to_sync)), OF_CALLS))
end

-- Permits of the known window that are free, less those kept for others; how long to wait and for what if there is none.
local function free_permits()
  local left = s['end'] - now
  local held_back = timing.held_back(s.others, now - s.since, now - s.told + (s.trip or 0), s.limit)
  -- What the service says is left need not move: it may be the customer's own limit. So our own count bounds it, too.
  local free = math.min(s.remaining - in_flight, s.limit - s.ours) - held_back
  local kept = timing.kept(left, s.limit, tonumber(ARGV[15]), tonumber(ARGV[20]))
  if free > kept then return free - kept, 0, '' end
  local first_end, calls = now + lease, 0
  for permit, over_at in pairs(flight) do
    first_end = math.min(first_end, over_at)
    if string.find(permit, OF_CALLS, 1, true) then calls = calls + 1 end
  end
  -- What is said to be left may be without those under way already, who count twice then. Calls may be hundreds: the sync
  -- does not wait for the window's end for what their answers will show.
  local at_best = math.min(s.remaining, s.limit - s.ours) - held_back
  local is_sync_beside_calls = calls > 0 and tonumber(ARGV[20]) == 0
  if in_flight > 0 and (held_back > 0 and s.remaining > 0 or is_sync_beside_calls and at_best > kept) then
    local pause = math.min(left, timing.asking_pause(now - (first_end - lease)))
    return 0, pause, held_back > 0 and 'shared' or 'limit'
  end
  return 0, timing.wait_for_limit(free, left), held_back > 0 and 'shared' or 'limit'
end

-- Whether one request is to go first, and find out about this window.
local function is_unsure() return not known() or is_stale() end

-- How many may be under way until then.
local function allowed_unsure()
  if is_stale() then return 1 end
  local limit = s.reset and not s.doubted_at and not take_turns() and s.limit
  return timing.unknown_allows(limit, s['end'] and now - s['end'], window)
end

if ARGV[11] ~= '' then
  local permit, free = ARGV[11], 1
  local blocked = math.max(s.blocked or 0, s.blocks[block_name] or 0, s.blocks[route] or 0)
  local guard_wait = guarded and wait_for_guard() or 0
  local own_wait = is_on_our_own() and wait_for_own_count() or 0
  if blocked > now then
    wait, why = blocked - now, 'blocked'
  elseif guard_wait > 0 then
    wait, why = guard_wait, 'guard'
  elseif own_wait > 0 then
    wait, why = own_wait, 'limit'
  else
    if known() then free, wait, why = free_permits() end
    if wait <= 0 and is_unsure() and s.probe and in_flight >= allowed_unsure() then
      wait, why = timing.asking_pause(now - s.probe_at), 'probe'
    end
  end
  local paced, gap = false, 0
  if wait <= 0 and s.paced and not guarded then paced, gap = wait_for_pace(free) end
  if paced and paced > 0 then wait, why = paced, 'pace' end
  if wait <= 0 then
    granted = 1
    if known() then s.ours = s.ours + 1 end
    if is_unsure() then
      why = 'probe'
      if not s.probe then s.probe, s.probe_at = permit, now end
    end
    flight[permit] = now + lease
    if guarded then
      enter_bucket(bucket, permit)
      redis.call('PEXPIRE', bucket, lease + guard_window + 1)
    else
      count_granted(paced, gap)
    end
  end
end

redis.call('SET', state, cjson.encode(s), 'PX', kept_for())
return { granted, math.max(0, math.ceil(wait)), why, redis_now }
