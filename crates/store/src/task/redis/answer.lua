-- Stores answers to open questions and wakes the instance that runs the task.
-- Arguments: prefix of the instances' channels, message, then keys and answers.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return { 'none' }
end
if not is_running() then
  return { 'ok' }
end

local stored = false
for i = 3, #ARGV, 2 do
  if redis.call('HDEL', KEYS[1], 'question:' .. ARGV[i]) == 1 then
    redis.call('HSET', KEYS[1], 'answer:' .. ARGV[i], ARGV[i + 1])
    stored = true
  end
end

if stored then
  set_updated()
  wake(ARGV[1] .. redis.call('HGET', KEYS[1], 'runner'), ARGV[2])
end
return { 'ok' }
