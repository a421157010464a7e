package stack_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/sortie/template"
)

// TestQueueOfWebhooks checks that a message is kept hidden while a function works on it, is
// received again after a failure, and is kept after the last one.
func TestQueueOfWebhooks(t *testing.T) {
	t.Parallel()
	for _, made := range []template.Template{deployed(t), everything(t)} {
		queue, mapping := named(t, made, "SQS::Queue", "Deliveries"), named(t, made, "Lambda::EventSourceMapping", "Delivering")
		hidden, err := strconv.Atoi(queue.Text("VisibilityTimeout"))
		takes, err2 := strconv.Atoi(functionOf(t, made, "deliver").Text("Timeout"))
		if err != nil || err2 != nil || hidden < 6*takes {
			t.Errorf("got messages hidden for %d s, want at least six times the function's %d s", hidden, takes)
		}
		if takes <= 20+15 {
			t.Errorf("got a timeout of %d s, want more than an attempt and what the function keeps for the last one", takes)
		}
		expect(t, queue, "true", "SqsManagedSseEnabled")
		expect(t, queue, "5", "RedrivePolicy", "maxReceiveCount")
		if target := queue.Text("RedrivePolicy", "deadLetterTargetArn"); target != "${DeadLetters.Arn}" {
			t.Errorf("got the dead-letter queue %s, want DeadLetters", target)
		}
		expect(t, mapping, "${Deliveries.Arn}", "EventSourceArn")
		if types := mapping.Text("FunctionResponseTypes"); !strings.Contains(types, "ReportBatchItemFailures") {
			t.Errorf("got response types %s, want ReportBatchItemFailures", types)
		}
		if function := mapping.Text("FunctionName"); !strings.Contains(function, "Deliver") {
			t.Errorf("got the function %s, want deliver", function)
		}
		for _, name := range []string{"deliver", "relay", "webhooks", "export"} {
			expect(t, functionOf(t, made, name), "${Deliveries}", "Environment", "Variables", "SORTIE_DELIVERIES")
		}
	}
}
