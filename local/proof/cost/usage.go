package cost

import (
	"maps"
	"slices"
)

// Kind is a billed quantity.
type Kind string

// The kinds, each with its unit.
const (
	APIRequests    Kind = "API Gateway requests"
	LambdaRequests Kind = "Lambda invocations"
	LambdaGBs      Kind = "Lambda GB-seconds" // memory times billed time
	Transitions    Kind = "Step Functions transitions"
	WriteUnits     Kind = "DynamoDB write request units"
	EventUnits     Kind = "DynamoDB write request units of events" // of the relay
	ReadUnits      Kind = "DynamoDB read request units"
	Signatures     Kind = "KMS asymmetric calls"
	Events         Kind = "EventBridge events"
	SecretCalls    Kind = "Secrets Manager calls"
	BucketWrites   Kind = "object store writes and lists" // R2's class A
	BucketReads    Kind = "object store reads"            // R2's class B
	QueueRequests  Kind = "SQS requests"
	FIFORequests   Kind = "SQS FIFO requests"
	SocketMessages Kind = "WebSocket messages of 32 KB"
	SocketMinutes  Kind = "minutes of a WebSocket"
	WakeUps        Kind = "EventBridge Scheduler invocations"
	TaskHeartbeats Kind = "Step Functions task heartbeats"
	LogGB          Kind = "CloudWatch Logs, GB taken in"
	OutGB          Kind = "GB sent out"

	KeyMonths    Kind = "KMS key, month"
	SecretMonths Kind = "secret, month"
	AlarmMonths  Kind = "metric of an alarm, month"
	MetricMonths Kind = "custom metric, month"

	FirewallMonths   Kind = "AWS WAF ACL, month"
	RuleMonths       Kind = "AWS WAF rule, month"
	FirewallRequests Kind = "AWS WAF requests"
	BackupGBMonths   Kind = "AWS Backup, GB of a table for a month"
	Traces           Kind = "X-Ray traces"
)

// Usage is the number of units of each kind.
type Usage map[Kind]float64

// Plus returns the sum and changes neither operand.
func (u Usage) Plus(other Usage) Usage {
	sum := maps.Clone(u)
	if sum == nil {
		sum = Usage{}
	}
	for kind, n := range other {
		sum[kind] += n
	}
	return sum
}

// Times returns n times the usage.
func (u Usage) Times(n float64) Usage {
	product := Usage{}
	for kind, units := range u {
		product[kind] = units * n
	}
	return product
}

// Line is one item of a bill, in US dollars.
type Line struct {
	Kind         Kind
	Units, Price float64
}

// Dollars returns the cost of the item.
func (l Line) Dollars() float64 { return l.Units * l.Price }

// Bill returns the cost of a usage, item by item, the most expensive first.
func Bill(u Usage) []Line {
	var lines []Line
	for _, kind := range slices.Sorted(maps.Keys(u)) {
		if u[kind] != 0 {
			lines = append(lines, Line{kind, u[kind], prices[kind]})
		}
	}
	slices.SortStableFunc(lines, func(a, b Line) int {
		switch {
		case a.Dollars() > b.Dollars():
			return -1
		case a.Dollars() < b.Dollars():
			return 1
		}
		return 0
	})
	return lines
}

// Dollars returns the total cost of a usage.
func Dollars(u Usage) float64 {
	total := 0.0
	for _, line := range Bill(u) {
		total += line.Dollars()
	}
	return total
}
