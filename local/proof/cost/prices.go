package cost

// PricesOf is the date of the prices: AWS's public list for us-east-1, arm64, on demand, first
// tier; and R2's list.
const PricesOf = "June 2025"

// prices are US dollars per unit.
var prices = map[Kind]float64{
	APIRequests:    3.50 / 1e6,
	LambdaRequests: 0.20 / 1e6,
	LambdaGBs:      0.0000133334,
	Transitions:    0.025 / 1e3,
	WriteUnits:     0.625 / 1e6,
	EventUnits:     0.625 / 1e6,
	ReadUnits:      0.125 / 1e6,
	Signatures:     0.15 / 1e4, // all asymmetric keys except RSA of 2048 bits
	Events:         1.00 / 1e6, // custom events; those of AWS and of schedules are free
	SecretCalls:    0.05 / 1e4,
	BucketWrites:   4.50 / 1e6,
	BucketReads:    0.36 / 1e6,
	QueueRequests:  0.40 / 1e6,
	FIFORequests:   0.50 / 1e6,
	SocketMessages: 1.00 / 1e6,
	SocketMinutes:  0.25 / 1e6,
	WakeUps:        1.00 / 1e6,
	LogGB:          0.50,
	OutGB:          0.09, // from AWS; R2 is free

	KeyMonths:    1.00,
	SecretMonths: 0.40,
	AlarmMonths:  0.10,
	MetricMonths: 0.30, // while it is published

	TaskHeartbeats: 0,

	FirewallMonths:   5.00,
	RuleMonths:       1.00,
	FirewallRequests: 0.60 / 1e6,
	BackupGBMonths:   0.10,
	Traces:           5.00 / 1e6,
}

// Assumption is a cost that is not counted.
type Assumption struct {
	What, Why string
}

// LaunchSeconds is added to each launch. The function waits until Fly has created and started a
// machine. In the measurement machines are processes, and that takes milliseconds.
const LaunchSeconds = 2.0

// Assumptions lists the assumptions.
func Assumptions() []Assumption {
	return []Assumption{
		{
			"Lambda's time is the time that LocalStack reports",
			"without counting and cold starts, with longer waits than on AWS",
		},
		{"a launch takes 2 s more", "the wait for a machine of Fly"},
		{
			"units of transactions follow DynamoDB's guide",
			"they are computed from the items before and after",
		},
		{
			"the access log of the API and the log of the state machine are missing",
			"a kilobyte of log costs $0.50 for a million",
		},
		{
			"custom metrics of a busy stack are missing",
			"about forty, $12 a month",
		},
		{
			"Lambda asks each queue for messages with five pollers, a request each 20 s",
			"priced, although a million a month are free",
		},
		{"a status request is one request", "a client that waits repeats it every 5 s"},
	}
}
