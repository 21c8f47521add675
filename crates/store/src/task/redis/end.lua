-- Ends a running task. Arguments: end; then, unless the runner itself ends it, the
-- prefix of the instances' channels and the message that wakes the runner.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return { 'none' }
end
if not is_running() then
  return { 'ok' }
end

remove_questions()
redis.call('HSET', KEYS[1], 'end', ARGV[1])
set_updated()
if ARGV[2] then
  wake(ARGV[2] .. redis.call('HGET', KEYS[1], 'runner'), ARGV[3])
end
return { 'ok' }
