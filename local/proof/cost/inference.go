package cost

import (
	"fmt"
	"strings"
)

// taskGoal is the maximum cost of a million tasks of 500 tokens in 20 s with one reader, in
// dollars.
const taskGoal = 120

// The request units of such a task, for its acceptance, its dispatcher and its reader.
// functions/dispatch: TestTaskCosts counts them. The dispatcher reads the slots of its pool and
// renews its seat once for all of its tasks.
const (
	acceptWrites, acceptReads         = 18, 19.5
	appendWrites                      = 67 // of the batches of 300 ms
	settleWrites, settleReads         = 61, 40.5
	dispatcherWrites, dispatcherReads = 5, 42
	followReads                       = 154
)

// The durations of the functions in seconds, and the other usage of a task. The relay gets the
// six events of a task in three batches.
const (
	taskSeconds       = 20
	dispatcherSeconds = taskSeconds + 1
	acceptSeconds     = 0.2
	taskEvents        = 6
	taskBatches       = 3
	taskLogGB         = 4e-6
	taskOutGB         = 500 * 75e-9 // events of 75 bytes
)

// taskBatch is the duration of a token batch in a deployment, in seconds.
const taskBatch = 0.3

// taskPart is one part of a task's usage.
type taskPart struct {
	name  string
	usage Usage
}

// taskParts returns the parts of a task. tasks is the number of concurrent tasks of its
// dispatcher. batch is the duration of a token batch, in seconds.
func taskParts(tasks, batch float64) []taskPart {
	appends := appendWrites * taskBatch / batch
	dispatcher := Usage{LambdaGBs: dispatcherSeconds * functionGB, LambdaRequests: 1, WriteUnits: dispatcherWrites, ReadUnits: dispatcherReads}
	return []taskPart{
		{"the request, its record and its budgets", Usage{
			APIRequests: 1, LambdaRequests: 2, LambdaGBs: acceptSeconds * functionGB, WriteUnits: acceptWrites, ReadUnits: acceptReads, // the call of a dispatcher is one
		}},
		{"its dispatcher", dispatcher.Times(1 / tasks)},
		{"its tokens in the table", Usage{WriteUnits: appends}},
		{"its start, end, heartbeats and transcript", Usage{WriteUnits: settleWrites, ReadUnits: settleReads, BucketWrites: 1}},
		{"its reader", Usage{
			APIRequests: 1, LambdaRequests: 1, LambdaGBs: taskSeconds * functionGB, ReadUnits: followReads * taskBatch / batch, OutGB: taskOutGB,
		}},
		{"its events", Usage{
			EventUnits: taskBatches * aloneWrites, ReadUnits: taskBatches * aloneReads, Events: taskEvents, LambdaRequests: taskBatches,
		}},
		{"its logs", Usage{LogGB: taskLogGB}},
	}
}

// taskTable returns the table of inference tasks as Markdown.
func taskTable() string {
	columns := []struct {
		name         string
		tasks, batch float64
	}{
		{"alone", 1, taskBatch},
		{"one of 16 of its dispatcher", 16, taskBatch},
		{"one of 16, a batch each second", 16, 1},
		{"the same without a reader", 16, 1},
	}
	var text strings.Builder
	text.WriteString("| $ a million |")
	for _, c := range columns {
		text.WriteString(" " + c.name + " |")
	}
	text.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n")
	totals := make([]float64, len(columns))
	for i, part := range taskParts(1, taskBatch) {
		fmt.Fprintf(&text, "| %s |", part.name)
		for at, c := range columns {
			dollars := Dollars(taskParts(c.tasks, c.batch)[i].usage) * 1e6
			if at == len(columns)-1 && part.name == "its reader" {
				dollars = 0
			}
			totals[at] += dollars
			fmt.Fprintf(&text, " %.2f |", dollars)
		}
		text.WriteString("\n")
	}
	text.WriteString("| in all |")
	for _, total := range totals {
		fmt.Fprintf(&text, " %.2f |", total)
	}
	text.WriteString("\n| at most " + fmt.Sprint(taskGoal) + " |")
	for _, total := range totals {
		word := "kept"
		if total > taskGoal {
			word = "**missed**"
		}
		text.WriteString(" " + word + " |")
	}
	return text.String() + "\n"
}
