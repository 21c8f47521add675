-- What the other scripts share; it stands before each of them. mod.rs says
-- what the keys are. KEYS[1]: the task.
local now = time()

local function runs()
  local created = redis.call('HMGET', KEYS[1], 'created', 'end')
  return created[1] and not created[2]
end

local function changed()
  redis.call('HSET', KEYS[1], 'updated', digits(now))
end

-- Nobody can answer any more.
local function forget_questions()
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if field:sub(1, 9) == 'question:' or field:sub(1, 7) == 'answer:' then
      redis.call('HDEL', KEYS[1], field)
    end
  end
end

-- Tells the replica that runs it to look.
local function tell(channel, message)
  redis.call('PUBLISH', channel, message)
end
