package cost

import (
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

func TestBill(t *testing.T) {
	t.Parallel()
	lines := Bill(Usage{Transitions: 8, WriteUnits: 60, ReadUnits: 0})
	if len(lines) != 2 || lines[0].Kind != Transitions || math.Abs(lines[0].Dollars()-0.0002) > 1e-9 {
		t.Errorf("got bill %+v", lines)
	}
	if total := Dollars(Usage{Transitions: 8, WriteUnits: 60}); math.Abs(total*1e6-237.5) > 1e-6 {
		t.Errorf("got %v dollars", total)
	}
}

func TestPrices(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{
		APIRequests, LambdaRequests, LambdaGBs, Transitions, WriteUnits, EventUnits, ReadUnits, Signatures, Events, SecretCalls,
		BucketWrites, BucketReads, QueueRequests, FIFORequests, SocketMessages, SocketMinutes, WakeUps, LogGB, OutGB, KeyMonths, SecretMonths, AlarmMonths, MetricMonths,
		FirewallMonths, RuleMonths, FirewallRequests, BackupGBMonths, Traces,
	} {
		if prices[kind] <= 0 {
			t.Errorf("%s has no price", kind)
		}
	}
}

func TestValueSize(t *testing.T) {
	t.Parallel()
	for want, value := range map[int]map[string]any{
		3: {"S": "abc"}, 5: {"B": "aGVsbG8="}, 2: {"N": "12"}, 13: {"BOOL": true},
	} {
		if is := size(value); is != want {
			t.Errorf("%v: got %d bytes, want %d", value, is, want)
		}
	}
}

func TestProxyCountsByFunction(t *testing.T) {
	t.Parallel()
	emulator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Amz-Target") {
		case "DynamoDB_20120810.GetItem":
			_, _ = w.Write([]byte(`{"Item":{"pk":{"S":"a"},"sk":{"S":"b"}},"ConsumedCapacity":{"CapacityUnits":0.5}}`))
		case "DynamoDB_20120810.Query":
			_, _ = w.Write([]byte(`{"Items":[],"ConsumedCapacity":{"CapacityUnits":2}}`))
		default:
			_, _ = w.Write([]byte(`{}`))
		}
	}))
	defer emulator.Close()
	p, err := NewProxy(emulator.URL, clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(p)
	defer proxy.Close()
	for _, call := range []struct{ method, path, target, body string }{
		{http.MethodPost, "/admit/", "DynamoDB_20120810.GetItem", `{"TableName":"t"}`},
		{http.MethodPost, "/admit/", "DynamoDB_20120810.Query", `{"TableName":"t"}`},
		{http.MethodPost, "/admit/", "DynamoDB_20120810.PutItem", `{"TableName":"t"}`},
		{http.MethodPost, "/admit/", "DynamoDB_20120810.TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"t","Item":{"pk":{"S":"a"},"sk":{"S":"b"}}}},{"ConditionCheck":{"TableName":"t","Key":{"pk":{"S":"a"},"sk":{"S":"b"}}}}]}`},
		{http.MethodPost, "/launch/", "TrentService.Sign", `{}`},
		{http.MethodPost, "/launch/", "secretsmanager.GetSecretValue", `{}`},
		{http.MethodPost, "/relay/", "AWSEvents.PutEvents", `{"Entries":[{},{}]}`},
		{http.MethodPost, "/relay/", "AWSStepFunctions.SendTaskSuccess", `{}`},
		{http.MethodPost, "/callback/", "AWSStepFunctions.SendTaskHeartbeat", `{}`},
		{http.MethodPut, "/bucket/key", "", "x"},
		{http.MethodGet, "/bucket/key", "", ""},
		{http.MethodDelete, "/bucket/key", "", ""},
		{http.MethodGet, "/bucket?list-type=2", "", ""},
		{http.MethodGet, "/bucket/key?uploadId=u", "", ""},
		{http.MethodDelete, "/bucket/key?uploadId=u", "", ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), call.method, proxy.URL+call.path, strings.NewReader(call.body))
		if err != nil {
			t.Fatal(err)
		}
		if call.target != "" {
			request.Header.Set("X-Amz-Target", call.target)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(err, answer)
		}
		_ = answer.Body.Close()
	}
	counted, _ := p.Take()
	for function, want := range map[string]Usage{
		"admit":  {ReadUnits: 2.5, WriteUnits: 1 + 4},
		"launch": {Signatures: 1, SecretCalls: 1},
		"relay":  {Events: 2}, "callback": {TaskHeartbeats: 1}, "objects": {BucketWrites: 3, BucketReads: 1},
	} {
		for kind, units := range want {
			if counted[function][kind] != units {
				t.Errorf("%s: got %v %s, want %v", function, counted[function][kind], kind, units)
			}
		}
	}
	if again, _ := p.Take(); len(again) != 0 {
		t.Errorf("second Take: got %v", again)
	}
}

// TestEmptyReadIsBilled checks the units of reads that find nothing. DynamoDB bills half a unit
// each, or one if the read is strongly consistent; DynamoDB Local reports 0.
func TestEmptyReadIsBilled(t *testing.T) {
	t.Parallel()
	emulator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"Items":[],"ConsumedCapacity":{"CapacityUnits":0}}`))
	}))
	defer emulator.Close()
	for _, row := range []struct {
		operation, body string
		want            float64
	}{
		{"Query", `{"TableName":"t"}`, 0.5},
		{"Query", `{"TableName":"t","ConsistentRead":true}`, 1},
		{"Query", `{"TableName":"t","ConsistentRead":false,"IndexName":"due"}`, 0.5},
		{"GetItem", `{"TableName":"t","ConsistentRead":true}`, 1},
		{"BatchGetItem", `{"RequestItems":{"t":{"Keys":[{},{},{}]},"u":{"Keys":[{}],"ConsistentRead":true}}}`, 2.5},
	} {
		p, err := NewProxy(emulator.URL, clock.System{})
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/sweep/", strings.NewReader(row.body))
		request.Header.Set("X-Amz-Target", "DynamoDB_20120810."+row.operation)
		p.ServeHTTP(httptest.NewRecorder(), request)
		counted, _ := p.Take()
		if got := counted["sweep"][ReadUnits]; got != row.want {
			t.Errorf("%s %s: got %v read units, want %v", row.operation, row.body, got, row.want)
		}
	}
}

func TestJobsAreBilledPerFiring(t *testing.T) {
	t.Parallel()
	m := Measured{Rows: []Row{{Name: RowPlain, Usage: Usage{Transitions: 6, WriteUnits: 58, LambdaRequests: 16}}}}
	want := []string{
		"| a scheduled run with constraints, at most | 70 | 7 | 1 | 17 | 223.15 |",
		"| a skipped firing, at most | 16 | 0 | 1 | 1 | 12.33 |",
		"| a month of a job that does not fire | 0 | 0 | 0 | 0 | 0.00 |",
	}
	got := strings.Split(strings.TrimSpace(m.Jobs()), "\n")[2:]
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPagesAreInTheReport(t *testing.T) {
	t.Parallel()
	m := Measured{Pages: []Page{{"runs", 12.5}}}
	if got, want := m.Report(), "runs 12.50"; !strings.Contains(got, want) {
		t.Errorf("got no %q in %s", want, got)
	}
	if strings.Contains((Measured{}).Report(), "console") {
		t.Error("got a list of pages that were not measured")
	}
}
