package main

// services are the groups of calls, with their descriptions.
var services = []struct{ name, text string }{
	{"Runs", "runs programs, and lists, explains, cancels and retries runs"},
	{"Tasks", "lists, shows, cancels and retries tasks, and reads their logs and outputs"},
	{"Jobs", "manages stored definitions of programs, with schedules"},
	{"Events", "reads and follows the events of the tenant"},
	{"Webhooks", "manages subscriptions to events, and their deliveries"},
	{"Pools", "manages pools: limits, drains, states"},
	{"Models", "manages the catalog of models"},
	{"Artifacts", "stores and reads content-addressed documents"},
	{"Exports", "makes the calls of the export contract"},
	{"Inference", "creates inference tasks, and manages sessions and budgets"},
	{"OpenAI", "makes the calls of the OpenAI API that Sortie has"},
	{"Workers", "makes the calls of workers, with the token of an attempt (WithToken). The package worker makes them for programs"},
	{"Server", "reads health, keys, metrics and documents of the server"},
}

// names are the methods of the operations. The test fails for an operation without one.
var names = map[string]string{
	"export": "Exports.Create", "status": "Exports.Status",
	"callback": "Workers.Callback", "started": "Workers.Started", "heartbeat": "Workers.Heartbeat", "completed": "Workers.Completed", "sendLog": "Workers.SendLog",
	"download": "Tasks.Output", "describeOutput": "Tasks.DescribeOutput", "deleteOutput": "Tasks.DeleteOutput", "listTasks": "Tasks.List", "task": "Tasks.Get",
	"taskEvents": "Tasks.Events", "taskLogs": "Tasks.Logs", "cancelTask": "Tasks.Cancel", "retryTask": "Tasks.Retry", "labelTask": "Tasks.Label",
	"createTask": "Inference.Create", "streamTask": "Inference.Stream", "session": "Inference.Session", "deleteSession": "Inference.DeleteSession",
	"budget": "Inference.Budget", "putBudget": "Inference.PutBudget", "usage": "Inference.Usage",
	"createChatCompletion": "OpenAI.Chat", "createCompletion": "OpenAI.Complete", "createEmbedding": "OpenAI.Embed", "createRerank": "OpenAI.Rerank", "listServedModels": "OpenAI.ListModels",
	"getServedModel": "OpenAI.GetModel", "createResponse": "OpenAI.Respond", "getResponse": "OpenAI.GetResponse", "deleteResponse": "OpenAI.DeleteResponse",
	"cancelResponse": "OpenAI.CancelResponse",
	"listRuns":       "Runs.List", "createRun": "Runs.Create", "cancelRuns": "Runs.CancelMany", "retryRuns": "Runs.RetryMany", "labelRuns": "Runs.LabelMany", "labelRun": "Runs.Label", "getRun": "Runs.Get", "pinRun": "Runs.Pin", "unpinRun": "Runs.Unpin", "redeliverActions": "Runs.Redeliver",
	"explainRun": "Runs.Explain", "activity": "Runs.Activity", "planRun": "Runs.Plan", "runUpdates": "Runs.Updates", "listChildren": "Runs.Children", "cancelRun": "Runs.Cancel", "retryRun": "Runs.Retry",
	"listJobs": "Jobs.List", "putJob": "Jobs.Put", "job": "Jobs.Get", "patchJob": "Jobs.Patch", "deleteJob": "Jobs.Delete", "jobVersion": "Jobs.Version",
	"pauseJob": "Jobs.Pause", "resumeJob": "Jobs.Resume", "clearJob": "Jobs.Clear", "explainJob": "Jobs.Explain", "runJob": "Jobs.Run", "sendJobEvents": "Jobs.SendEvents", "listJobRuns": "Jobs.Runs",
	"capabilities": "Pools.Capabilities", "listPools": "Pools.List", "putPool": "Pools.Put", "pool": "Pools.Get", "deletePool": "Pools.Delete",
	"drainPool": "Pools.Drain", "resumePool": "Pools.Resume", "reloadPool": "Pools.Reload", "poolHealth": "Pools.Health", "poolGuests": "Pools.Guests",
	"listEvents": "Events.List", "createEventTicket": "Events.CreateTicket", "replayEvents": "Events.Replay", "streamEvents": "Events.Stream",
	"connectEvents": "Events.WebSocket",
	"jobSchema":     "Server.JobSchema", "keys": "Server.Keys", "health": "Server.Health", "ready": "Server.Ready", "metrics": "Server.Metrics",
	"openapi": "Server.OpenAPI", "reportMachines": "Server.ReportMachines",
	"createArtifact": "Artifacts.Create", "listArtifacts": "Artifacts.List", "artifact": "Artifacts.Get",
	"createModel": "Models.Create", "listModels": "Models.List", "model": "Models.Get", "patchModel": "Models.Patch", "deleteModel": "Models.Delete",
	"verifyModel": "Models.Verify", "setModelState": "Models.SetState",
	"createWebhook": "Webhooks.Create", "listWebhooks": "Webhooks.List", "webhook": "Webhooks.Get", "patchWebhook": "Webhooks.Patch",
	"deleteWebhook": "Webhooks.Delete", "rotateWebhook": "Webhooks.Rotate", "testWebhook": "Webhooks.Test", "webhookDeliveries": "Webhooks.Deliveries",
	"redeliverWebhook": "Webhooks.Redeliver",
}

// handWritten are the operations that are streams, or have bodies or answers other than JSON.
var handWritten = []string{"download", "describeOutput", "taskLogs", "streamTask", "streamEvents", "connectEvents", "artifact", "createArtifact", "sendJobEvents"}

// repeatable are the operations with POST that have the effect of one call if they are sent twice.
var repeatable = []string{"pinRun", "unpinRun", "redeliverActions", "cancelRun", "cancelRuns", "cancelTask", "planRun", "cancelResponse", "reportMachines", "started", "heartbeat", "completed", "sendLog", "callback"}
