-- Health of a sluice.dev/KinesisConsumer for Argo CD, from its conditions (docs/reference/status.md, "Status").
local health = {status = "Progressing", message = "Waiting for the operator"}
if obj.metadata.deletionTimestamp ~= nil then
  health.message = "Being deleted"
  return health
end
if obj.status == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return health
end
local conditions = {}
for _, condition in ipairs(obj.status.conditions or {}) do
  conditions[condition.type] = condition
end
local ready, stalled, reconciling = conditions.Ready, conditions.Stalled, conditions.Reconciling
if stalled ~= nil and stalled.status == "True" then
  return {status = "Degraded", message = stalled.message}
end
if ready == nil then
  return health
end
health.message = ready.reason .. ": " .. (ready.message or "")
if ready.reason == "Paused" then
  health.status = "Suspended"
elseif reconciling ~= nil and reconciling.status == "True" then
  health.status = "Progressing"
elseif ready.status == "True" and ready.reason == "Suspended" then
  health.status = "Suspended"
elseif ready.status == "True" then
  health.status = "Healthy"
end
return health
