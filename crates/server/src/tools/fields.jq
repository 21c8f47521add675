# Members of records by their names; a name with dots leads into members, unless it is one itself.
def member($name):
  reduce ($name / ".")[] as $step (.; if type == "object" then .[$step] else null end);
def named($name):
  if type != "object" then null elif has($name) then .[$name] else member($name) end;
# A path into null is known: the record has no value there.
def knows_path($steps):
  if ($steps | length) == 0 or . == null then true
  elif type == "object" and has($steps[0]) then .[$steps[0]] | knows_path($steps[1:])
  else false end;
def knows($name):
  if type != "object" then false else has($name) or knows_path($name / ".") end;
def known: . as $value | [$names[] | . as $name | select($value | knows($name))];
def chosen: . as $record | reduce $names[] as $name ({}; . + { ($name): ($record | named($name)) });

. as $value
| (if type == "array" then .
   elif (known | length) == ($names | length) then [.]
   else [root] as $rows
     | if any($rows[]; known | length > 0) or (known | length) == 0 then $rows else [$value] end
   end) as $records
| [$names[] | . as $name | select([$records[] | knows($name)] | any | not)] as $missing
| if ($records | length) > 0 and ($missing | length) > 0 then
    ($records[0] | if type == "object" then keys_unsorted else [] end) as $there
    | error("fields: no record has \($missing | join(", ")); the first one has \($there | join(", "))")
  else $records[] | chosen end
