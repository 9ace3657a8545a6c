-- The pace of routes of which we know no guard, as pacing.lua has it: what is read and written of KEYS[6]. Part of the
-- script: after budget.lua, which has read the state, and before decide.lua.

local function numbers(hash)
  local fields, found = redis.call('HGETALL', hash), {}
  for index = 1, #fields, 2 do found[fields[index]] = tonumber(fields[index + 1]) end
  return found
end

-- How many requests of a route have passed since the stretch began at `from`.
local function passed_since(from, of)
  local counted_from, passed = unpack(s.passed[of] or {})
  return counted_from == from and passed or 0
end

-- A request to this route passed: it tells how much a guard lets through that refuses later, or has refused since.
local function count_passed(sent)
  if s.first and sent >= s.first then
    s.passed[route] = { s.first, passed_since(s.first, route) + 1 }
    return
  end
  local p = redis.call('HMGET', paces, 'from', 'to', 'taught', 'passed ' .. route)
  if p[1] and sent >= tonumber(p[1]) and sent <= tonumber(p[2]) then
    local passed = tonumber(p[4] or 0) + 1
    redis.call('HSET', paces, 'passed ' .. route, passed, 'gap ' .. route, pacing.learned_gap(passed, tonumber(p[3])))
  end
end

-- Although the route kept a pace: its shortest distance grows.
local function refused_again(p, passed, strength, taught)
  local gap = p['gap ' .. route]
  redis.call('HSET', paces, 'floor ' .. route, pacing.floor(
    p['floor ' .. route] or 0, gap, strength, p['went ' .. route] or gap, passed, taught))
end

-- A guard that we know nothing of refused: this route keeps a pace from now on, and so do those that were busy with it.
local function learn_pace(sent, retry_after)
  local p = numbers(paces)
  local gap, refused_at = p['gap ' .. route], p.refused_at
  if refused_at and sent < p.hold then
    -- On its way together with the one whose refusal we know of, or before the guard was to let requests through again.
    if not gap then
      redis.call('HSET', paces, 'passed ' .. route, 0, 'gap ' .. route, pacing.learned_gap(0, p.taught))
    elseif not p.from then
      refused_again(p, s.passed[route] and s.passed[route][2] or 0, pacing.strength(now - refused_at), p.taught)
    end
    redis.call('HSET', paces, 'hold', math.max(p.hold, now + retry_after))
    return
  end
  local strength = refused_at and pacing.strength(now - refused_at) or 0
  local from = s.first and math.min(s.first, sent) or sent
  local taught = sent - from + retry_after
  local passed_of = { [route] = passed_since(from, route) }
  for busy, count_of in pairs(s.passed) do
    if count_of[1] == from then passed_of[busy] = count_of[2] end
  end
  if gap and strength > 0 then
    refused_again(p, passed_of[route], strength, taught)
    redis.call('HSET', paces, 'gap ' .. route, pacing.slower(gap, strength, window), 'taught', taught)
    redis.call('HDEL', paces, 'from', 'to')
  else
    local all = 0
    for busy, passed in pairs(passed_of) do
      if strength == 0 or not p['gap ' .. busy] then
        all = all + passed
        redis.call('HSET', paces, 'passed ' .. busy, passed, 'gap ' .. busy, pacing.learned_gap(passed, taught),
          'floor ' .. busy, 0)
      end
    end
    redis.call('HSET', paces, 'from', from, 'to', sent, 'taught', taught, 'catch_up',
      pacing.catch_up_gap(all, sent - from, retry_after, pacing.even_gap(window, s.limit or most)))
  end
  redis.call('HSET', paces, 'refused_at', now, 'hold', now + retry_after)
  redis.call('PEXPIRE', paces, KEEP_MS)
  s.first, s.last, s.paced = nil, nil, now
end

-- How long this route's pace makes it wait, and the gap itself; false if it has none.
local function wait_for_pace(free)
  local p = redis.call('HMGET', paces, 'gap ' .. route, 'refused_at')
  local gap, refused_at = tonumber(p[1] or nil), tonumber(p[2] or nil)
  local strength = gap and pacing.strength(now - refused_at) or 0
  if strength == 0 then return false end
  local all, routes, last_other = numbers(paces), 1, nil
  for field in pairs(all) do
    local other = string.match(field, '^gap (.*)$')
    if other and other ~= route and pacing.is_active(all['last ' .. other], all.hold, now) then
      routes, last_other = routes + 1, math.max(last_other or 0, all['last ' .. other] or 0)
    end
  end
  local left = known() and s['end'] - now or nil
  local length = left and s['end'] - s.since
  local catch_up = left and s.since <= refused_at and all.catch_up or 0
  local slowest = math.max(all['floor ' .. route] or 0, pacing.slowest_gap(left, length, free,
    pacing.even_gap(window, s.limit or most), routes, catch_up, all['went ' .. route]))
  local effective = math.min(gap * strength, slowest)
  local at_most = refused_at + slowest
  return pacing.wait(all['last ' .. route], effective, last_other, routes, all.hold, at_most, now), effective
end

local function count_granted(paced, gap)
  if not pacing.is_same_stretch(s.last, now) then s.first = now end
  s.last = now
  if paced then redis.call('HSET', paces, 'last ' .. route, now, 'went ' .. route, gap) end
end
