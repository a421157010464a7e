// Package acceptance tests a deployment in LocalStack. It runs the suite that every Sortie
// passes, and then events that a deployment in an account may meet: another release is deployed
// during runs, processes of functions are killed, a function is broken.
//
//	machines, collection (package fixtures) ◄── functions in LocalStack ◄── the tests
//	                                                ▲    ▲
//	                         deploy, SIGKILL, settings   └── the sweep, more often than each minute
//
// It detects runs that are accepted and lost, unexpected or repeated ends, and leftover
// machines. Its tests have the build tag localstack. "localstack test" (TestDeployed) and
// "localstack chaos" (TestFaults) run them and pass all addresses in the environment.
package acceptance

import (
	"maps"

	"github.com/sortie-dev/sortie/local/proof/suite"
)

// Release is the name of the release that replaces the first deployment.
const Release = "second"

// Settings returns the settings of a deployment under test. Its limits are short enough for
// tests.
func Settings() map[string]string {
	settings := suite.Settings()
	maps.Copy(settings, map[string]string{"SORTIE_CANCEL_GRACE": "3s"})
	return settings
}
