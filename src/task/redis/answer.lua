-- Takes answers to what is asked, and tells whoever runs the task: what its
-- replica's channel begins with, the message, then keys and answers.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return { 'none' }
end
if not runs() then
  return { 'ok' }
end
local taken = false
for i = 3, #ARGV, 2 do
  if redis.call('HDEL', KEYS[1], 'question:' .. ARGV[i]) == 1 then
    redis.call('HSET', KEYS[1], 'answer:' .. ARGV[i], ARGV[i + 1])
    taken = true
  end
end
if taken then
  changed()
  tell(ARGV[1] .. redis.call('HGET', KEYS[1], 'runner'), ARGV[2])
end
return { 'ok' }
