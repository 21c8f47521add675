-- Marks a task whose instance is missing, and ends it if the instance is still
-- missing after an interval. One check is not enough, because a Redis that has just
-- restarted may not have received the instance's heartbeat yet. Arguments: runner,
-- interval, end.
if not is_running() or redis.call('HGET', KEYS[1], 'runner') ~= ARGV[1] then
  return { 'none' }
end

local suspect_since = redis.call('HGET', KEYS[1], 'doubted')
if not suspect_since then
  redis.call('HSET', KEYS[1], 'doubted', digits(now))
elseif now - tonumber(suspect_since) >= tonumber(ARGV[2]) then
  remove_questions()
  redis.call('HSET', KEYS[1], 'end', ARGV[3])
  set_updated()
end
return { 'ok' }
