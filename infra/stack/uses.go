package stack

import (
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// statement is one permission: exactly these actions on these resources.
type statement struct {
	actions, resources []string
}

// grant is what a function gets for a use: variables, and permissions of its role.
type grant struct {
	env   map[string]string
	allow []statement
}

// grants has the grant of each use in this stack.
func (b *builder) grants() map[use]grant {
	table := map[string]string{"SORTIE_TABLE": b.table.name}
	machine := map[string]string{"SORTIE_STATE_MACHINE": b.started()}
	onTable, onMachine, onExecutions := []string{b.table.arn}, []string{b.machine.arn}, []string{b.machine.executions}
	reading := statement{[]string{"dynamodb:GetItem", "dynamodb:Query"}, onTable}
	// An index has only the keys, so the runs are read in batches, as are those of a
	// commit that releases or grants a slot.
	batches := statement{[]string{"dynamodb:BatchGetItem"}, onTable}
	// A transaction needs the permissions of its parts.
	writing := statement{
		[]string{"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}, onTable,
	}
	buffering := "buffered"
	if b.settings.Stream {
		buffering = ""
	}
	keys := map[string]string{"SORTIE_KEYS": strings.Join(b.keys, ",")}
	public := statement{[]string{"kms:GetPublicKey"}, b.keys}
	return map[use]grant{
		configured: {b.settings.Service, nil},
		shares:     {optionalVariable("SORTIE_ORIGINS", strings.Join(b.settings.Origins, ",")), nil},
		versioned:  {optionalVariable("SORTIE_VERSION", b.settings.Version), nil},
		streams:    {optionalVariable("SORTIE_STREAMING", buffering), nil},

		reads:  {table, []statement{reading}},
		writes: {table, []statement{reading, batches, writing}},
		lists:  {table, []statement{{[]string{"dynamodb:Query"}, b.table.indexed(schema.IndexList, schema.IndexJobs)}}},
		surveys: {table, []statement{
			{[]string{"dynamodb:Query"}, b.table.indexed(schema.IndexDue, schema.IndexMachines)},
		}},

		starts: {machine, []statement{
			{[]string{"states:StartExecution"}, onMachine},
			// An execution of the same name may exist.
			{[]string{"states:DescribeExecution"}, onExecutions},
		}},
		completes:  {machine, []statement{{[]string{"states:SendTaskFailure", "states:SendTaskSuccess"}, onMachine}}},
		heartbeats: {machine, []statement{{[]string{"states:SendTaskHeartbeat"}, onMachine}}},
		stops:      {machine, []statement{{[]string{"states:StopExecution"}, onExecutions}}},

		verifies:    {keys, []statement{public}},
		signs:       {keys, []statement{public, {[]string{"kms:Sign"}, b.keys}}},
		signsEvents: b.secretGrant(eventsSecret, nil),
		clients:     b.secretGrant("clients", nil),
		machines:    b.machinesGrant(),
		offers:      {b.offers(), nil},
		outputs: b.secretGrant("outputs", map[string]string{
			"SORTIE_UPLOADS_BUCKET": b.buckets.uploads, "SORTIE_ACCEPTED_BUCKET": b.buckets.accepted,
			"SORTIE_OUTPUTS_ENDPOINT": b.buckets.endpoint,
		}),
		valued:    {nil, []statement{{[]string{"secretsmanager:GetSecretValue"}, []string{b.namedSecrets()}}}},
		addressed: {map[string]string{"SORTIE_PUBLIC_URL": b.url}, nil},
		publishes: {map[string]string{"SORTIE_BUS": b.bus.name}, []statement{{[]string{"events:PutEvents"}, []string{b.bus.arn}}}},
		consumes: {nil, []statement{
			{[]string{"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"}, []string{b.table.stream}},
			{[]string{"dynamodb:ListStreams"}, []string{b.table.arn + "/stream/*"}},
		}},
		exports: b.exportsGrant(),
		wakes:   b.wakesGrant(),
		traced:  b.tracesGrant(),
		queues:  {map[string]string{"SORTIE_DELIVERIES": b.deliveries.url}, []statement{{[]string{"sqs:SendMessage"}, []string{b.deliveries.arn}}}},
		receives: {nil, []statement{
			{[]string{"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}, []string{b.deliveries.arn}},
		}},
		seated: {b.settings.readers(), []statement{
			{[]string{"dynamodb:DeleteItem", "dynamodb:PutItem"}, onTable},
		}},
		deadLetter: {nil, []statement{{[]string{"sqs:SendMessage"}, []string{b.dead.arn}}}},
	}
}

// optionalVariable is one variable, or none if its value is empty.
func optionalVariable(name, value string) map[string]string {
	if value == "" {
		return nil
	}
	return map[string]string{name: value}
}
