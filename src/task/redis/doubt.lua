-- Ends a task whose replica is missing for the second time, a while after the
-- first: a Redis that has just come back may not have heard of it yet. The
-- runner, the while, the end.
if not runs() or redis.call('HGET', KEYS[1], 'runner') ~= ARGV[1] then
  return { 'none' }
end
local doubted = redis.call('HGET', KEYS[1], 'doubted')
if not doubted then
  redis.call('HSET', KEYS[1], 'doubted', digits(now))
elseif now - tonumber(doubted) >= tonumber(ARGV[2]) then
  forget_questions()
  redis.call('HSET', KEYS[1], 'end', ARGV[3])
  changed()
end
return { 'ok' }
