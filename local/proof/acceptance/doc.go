// Package trial holds what is deployed in LocalStack to its promises: it plays
// the suite that every Sortie passes, and then does to the deployment what may
// happen to it in an account: another release is deployed while runs are in
// flight, processes of functions are killed, a function is broken.
//
//	machines, collection (package outskirts) ◄── functions in LocalStack ◄── the tests
//	                                                 ▲    ▲
//	                          deploy, SIGKILL, settings   └── the sweep, more often than each minute
//
// It promises to notice a run that was accepted and is lost, that ends otherwise
// than in peace, or twice; and a machine that is left. Its tests carry the tag
// localstack, and are called by "localstack test" (TestDeployed) and "localstack
// chaos" (TestStruck), which tell them where everything is.
package acceptance

import (
	"maps"

	"github.com/sortie-dev/sortie/local/proof/suite"
)

// Release is the word of what is deployed over the first deployment.
const Release = "second"

// Settings are what a deployment that is tried is configured with: limits with
// which no test waits for a human.
func Settings() map[string]string {
	settings := suite.Settings()
	maps.Copy(settings, map[string]string{"SORTIE_CANCEL_GRACE": "3s"})
	return settings
}
