package stack

import (
	"maps"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// statement is a permission for exactly these actions on these resources.
type statement struct {
	actions, resources []string
	// partitions are patterns of DynamoDB partition keys. If empty, all partitions are
	// permitted.
	partitions []string
}

// grant contains the variables of a function and the permissions of its role for one use.
type grant struct {
	env   map[string]string
	allow []statement
}

// grants returns the grant of each use in this stack.
func (b *builder) grants() map[use]grant {
	table := map[string]string{"SORTIE_TABLE": b.table.name}
	machine := map[string]string{"SORTIE_STATE_MACHINE": b.started()}
	onTable, onMachine, onExecutions := []string{b.table.arn}, []string{b.machine.arn}, []string{b.machine.executions}
	reading := statement{actions: []string{"dynamodb:GetItem", "dynamodb:Query"}, resources: onTable}
	// An index contains only the keys, so the runs are read in batches. So are those of a
	// commit that releases or grants a slot.
	batches := statement{actions: []string{"dynamodb:BatchGetItem"}, resources: onTable}
	// A transaction needs the permissions of its parts.
	writing := statement{
		actions: []string{"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}, resources: onTable,
	}
	buffering := "buffered"
	if b.settings.Stream {
		buffering = ""
	}
	keys := map[string]string{"SORTIE_KEYS": strings.Join(b.keys, ",")}
	public := statement{actions: []string{"kms:GetPublicKey"}, resources: b.keys}
	all := map[use]grant{
		configured: {b.settings.Service, nil},
		shares:     {optionalVariable("SORTIE_ORIGINS", strings.Join(b.settings.Origins, ",")), nil},
		versioned:  {optionalVariable("SORTIE_VERSION", b.settings.Version), nil},
		streams:    {optionalVariable("SORTIE_STREAMING", buffering), nil},

		reads:  {table, []statement{reading}},
		writes: {table, []statement{reading, batches, writing}},
		lists:  {table, []statement{{actions: []string{"dynamodb:Query"}, resources: b.table.indexed(schema.IndexList)}, batches}},
		ofJobs: {table, []statement{{actions: []string{"dynamodb:Query"}, resources: b.table.indexed(schema.IndexJobs)}, batches}},
		// A scan of a small index costs less than a query of each partition key.
		dues:    {table, []statement{{actions: []string{"dynamodb:Query", "dynamodb:Scan"}, resources: b.table.indexed(schema.IndexDue)}, batches}},
		surveys: {table, []statement{{actions: []string{"dynamodb:Query", "dynamodb:Scan"}, resources: b.table.indexed(schema.IndexMachines)}, batches}},

		starts: {machine, []statement{
			{actions: []string{"states:StartExecution"}, resources: onMachine},
			// An execution with the same name may exist.
			{actions: []string{"states:DescribeExecution"}, resources: onExecutions},
		}},
		completes:  {machine, []statement{{actions: []string{"states:SendTaskFailure", "states:SendTaskSuccess"}, resources: onMachine}}},
		heartbeats: {machine, []statement{{actions: []string{"states:SendTaskHeartbeat"}, resources: onMachine}}},
		stops:      {machine, []statement{{actions: []string{"states:StopExecution"}, resources: onExecutions}}},

		verifies:    {keys, []statement{public}},
		signs:       {keys, []statement{public, {actions: []string{"kms:Sign"}, resources: b.keys}}},
		signsEvents: b.eventSeed(),
		clients:     b.secretGrant("clients", nil),
		machines:    b.machinesGrant(),
		offers:      {b.offers(), nil},
		outputs: b.secretGrant("outputs", map[string]string{
			"SORTIE_UPLOADS_BUCKET": b.buckets.uploads, "SORTIE_ACCEPTED_BUCKET": b.buckets.accepted,
			"SORTIE_OUTPUTS_ENDPOINT": b.buckets.endpoint,
		}),
		valued:    {nil, []statement{{actions: []string{"secretsmanager:GetSecretValue"}, resources: []string{b.namedSecrets()}}}},
		warnsOf:   {nil, []statement{{actions: []string{"secretsmanager:DescribeSecret"}, resources: []string{b.namedSecrets()}}}},
		addressed: {map[string]string{"SORTIE_PUBLIC_URL": b.url}, nil},
		publishes: {map[string]string{"SORTIE_BUS": b.bus.name}, []statement{{actions: []string{"events:PutEvents"}, resources: []string{b.bus.arn}}}},
		consumes: {nil, []statement{
			{actions: []string{"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"}, resources: []string{b.table.stream}},
			{actions: []string{"dynamodb:ListStreams"}, resources: []string{b.table.arn + "/stream/*"}},
		}},
		exports: b.exportsGrant(),
		wakes:   b.wakesGrant(),
		traced:  b.tracesGrant(),
		dispatches: {map[string]string{"SORTIE_DISPATCH": b.dispatcher()}, []statement{
			{actions: []string{"lambda:InvokeFunction"}, resources: []string{b.dispatcher()}},
		}},
		queues: {map[string]string{"SORTIE_DELIVERIES": b.deliveries.url}, []statement{{actions: []string{"sqs:SendMessage"}, resources: []string{b.deliveries.arn}}}},
		receives: {nil, []statement{
			{actions: []string{"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}, resources: []string{b.deliveries.arn}},
		}},
		seated: {b.settings.readers(), []statement{b.writesOnly(schema.SeatPartitions)}},
		signsIn: {table, []statement{
			{actions: []string{"dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem"}, resources: onTable, partitions: []string{sessionPartitions}},
			{actions: []string{"dynamodb:Query", "dynamodb:Scan"}, resources: b.table.indexed(schema.IndexDue)},
		}},
		deadLetter: {nil, []statement{{actions: []string{"sqs:SendMessage"}, resources: []string{b.dead.arn}}}},
	}
	maps.Copy(all, b.socketGrants())
	return all
}

// sessionPartitions is the pattern of the partition keys of the sessions and tickets of the
// console, of all tenants.
const sessionPartitions = "*#resource#console-*"

// optionalVariable returns a map with one variable, or nil if the value is empty.
func optionalVariable(name, value string) map[string]string {
	if value == "" {
		return nil
	}
	return map[string]string{name: value}
}
