// Broken is a function that fails in a way that nobody foresaw: its error has a
// name that no state of the state machine tries again. It takes the place of a
// deployed function in a test.
package main

import (
	"errors"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func() error { return errors.New("this function is broken") })
}
