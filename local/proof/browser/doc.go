// Package browser tests the web console in Chromium, on a real sortie dev.
//
// The tests have the build tag browser. Each page is opened in both colour schemes, on a wide and
// on a narrow screen, with and without JavaScript. In every tab a console error, a violation of
// the content security policy, a dialog and a request to another host is a failure. axe-core
// checks the accessibility. README.md says what the tests need.
package browser
