package stack

import (
	"maps"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// statement is one permission: exactly these actions on these resources.
type statement struct {
	actions, resources []string
}

// need is what a use comes to: the variables that the function reads, and what
// its role may do.
type need struct {
	env   map[string]string
	allow []statement
}

// needs are what each use comes to in this stack.
func (h *house) needs() map[use]need {
	table := map[string]string{"SORTIE_TABLE": h.table.name}
	machine := map[string]string{"SORTIE_STATE_MACHINE": h.machine.arn}
	onTable, onMachine, onExecutions := []string{h.table.arn}, []string{h.machine.arn}, []string{h.machine.executions}
	reading := statement{[]string{"dynamodb:GetItem", "dynamodb:Query"}, onTable}
	// An index has the keys alone; the runs are then read in batches. So are the
	// runs of a commit that gives a slot back, or hands it on.
	batches := statement{[]string{"dynamodb:BatchGetItem"}, onTable}
	// A transaction is allowed by the actions of its parts.
	writing := statement{
		[]string{"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}, onTable,
	}
	buffering := "buffered"
	if h.settings.Stream {
		buffering = ""
	}
	keys := map[string]string{"SORTIE_KEYS": strings.Join(h.keys, ",")}
	public := statement{[]string{"kms:GetPublicKey"}, h.keys}
	return map[use]need{
		configured: {h.settings.Service, nil},
		shares:     {given("SORTIE_ORIGINS", strings.Join(h.settings.Origins, ",")), nil},
		versioned:  {given("SORTIE_VERSION", h.settings.Version), nil},
		streams:    {given("SORTIE_STREAMING", buffering), nil},

		reads:  {table, []statement{reading}},
		writes: {table, []statement{reading, batches, writing}},
		lists:  {table, []statement{{[]string{"dynamodb:Query"}, h.table.indexed(schema.IndexList)}}},
		surveys: {table, []statement{
			{[]string{"dynamodb:Query"}, h.table.indexed(schema.IndexDue, schema.IndexMachines)},
		}},

		starts: {machine, []statement{
			{[]string{"states:StartExecution"}, onMachine},
			// What was started before under the name is looked at.
			{[]string{"states:DescribeExecution"}, onExecutions},
		}},
		completes: {machine, []statement{{[]string{"states:SendTaskFailure", "states:SendTaskSuccess"}, onMachine}}},
		beats:     {machine, []statement{{[]string{"states:SendTaskHeartbeat"}, onMachine}}},
		stops:     {machine, []statement{{[]string{"states:StopExecution"}, onExecutions}}},

		verifies: {keys, []statement{public}},
		signs:    {keys, []statement{public, {[]string{"kms:Sign"}, h.keys}}},
		clients:  secretNeed("SORTIE_SECRET_CLIENTS", h.secrets.clients, nil),
		machines: secretNeed("SORTIE_SECRET_FLY", h.secrets.fly, map[string]string{
			"SORTIE_FLY_APPS": strings.Join(h.settings.FlyApps, ","), "SORTIE_FLY_URL": h.settings.FlyURL,
		}),
		outputs: secretNeed("SORTIE_SECRET_OUTPUTS", h.secrets.outputs, map[string]string{
			"SORTIE_UPLOADS_BUCKET": h.buckets.uploads, "SORTIE_KEPT_BUCKET": h.buckets.kept,
			"SORTIE_OUTPUTS_ENDPOINT": h.buckets.endpoint,
		}),
		addressed: {map[string]string{"SORTIE_PUBLIC_URL": h.url}, nil},
		publishes: {map[string]string{"SORTIE_BUS": h.bus.name}, []statement{{[]string{"events:PutEvents"}, []string{h.bus.arn}}}},
		consumes: {nil, []statement{
			{[]string{"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"}, []string{h.table.stream}},
			{[]string{"dynamodb:ListStreams"}, []string{h.table.arn + "/stream/*"}},
		}},
		loses: {nil, []statement{{[]string{"sqs:SendMessage"}, []string{h.lost.arn}}}},
	}
}

// secretNeed is a secret and the variables beside it; empty ones are left out.
func secretNeed(name, id string, more map[string]string) need {
	env := map[string]string{name: id}
	maps.Copy(env, more)
	maps.DeleteFunc(env, func(_, value string) bool { return value == "" })
	return need{env, []statement{{[]string{"secretsmanager:GetSecretValue"}, []string{id}}}}
}

// given is one variable, or none where its value is empty.
func given(name, value string) map[string]string {
	if value == "" {
		return nil
	}
	return map[string]string{name: value}
}
