-- The operator keeps updating the status but changes nothing. The driver keeps running.
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["sluice.dev/paused"] = "true"
return obj
