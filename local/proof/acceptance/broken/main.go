// Broken is a function that fails with an error that no state of the state machine retries. A
// test deploys it instead of a real function.
package main

import (
	"errors"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func() error { return errors.New("this function is broken") })
}
