package asl_test

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/twin/asl"
)

// A machine has no clock: the caller passes the time and makes the calls that the
// execution requests.
func ExampleMachine_Start() {
	machine, err := asl.Parse([]byte(`{"StartAt": "Work", "States": {
		"Work": {"Type": "Task", "Resource": "work", "Next": "Pause"},
		"Pause": {"Type": "Wait", "Seconds": 3600, "Next": "Done"},
		"Done": {"Type": "Succeed"}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	env := asl.Env{Now: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC), Random: func() uint64 { return 4 }}
	execution, calls := machine.Start(env, "input")
	fmt.Println(execution.Status(), calls[0].State, calls[0].Payload)

	execution.Returned(env, calls[0].Attempt, "output")
	until, _ := execution.Deadline()
	fmt.Println(execution.Status(), "until", until.Format(time.TimeOnly))

	env.Now = until
	execution.Tick(env)
	fmt.Println(execution.Status(), execution.Output())
	// Output:
	// RUNNING Work input
	// RUNNING until 10:00:00
	// SUCCEEDED output
}

// Validate names each mistake with its place.
func ExampleValidate() {
	for _, problem := range asl.Validate([]byte(`{"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}}}`)) {
		fmt.Println(problem)
	}
	// Output:
	// States.A.Next: no state "B"
}
