// Package mail has a mail server of its own. Its test runs the local stack with the job file of a
// nightly report, which sends an e-mail when it is late. A process trusts the certificate of the
// server from its start, so that the test is not one of the suite.
package mail
