// Package acceptance tests a deployment in LocalStack: it runs the suite that
// every Sortie passes, and then what may happen to a deployment in an account:
// another release is deployed during runs, processes of functions are killed, a
// function is broken.
//
//	machines, collection (package fixtures) ◄── functions in LocalStack ◄── the tests
//	                                                ▲    ▲
//	                         deploy, SIGKILL, settings   └── the sweep, more often than each minute
//
// It detects a run that was accepted and lost, a run with an unexpected or
// repeated end, and a leftover machine. Its tests have the build tag localstack
// and are run by "localstack test" (TestDeployed) and "localstack chaos"
// (TestFaults), which pass all addresses in the environment.
package acceptance

import (
	"maps"

	"github.com/sortie-dev/sortie/local/proof/suite"
)

// Release is the name of the release that is deployed over the first
// deployment.
const Release = "second"

// Settings configure a deployment under test, with limits short enough for
// tests.
func Settings() map[string]string {
	settings := suite.Settings()
	maps.Copy(settings, map[string]string{"SORTIE_CANCEL_GRACE": "3s"})
	return settings
}
