// Package imports holds no code: its test checks which packages of this module may link which, through
// everything that they import. The linter's depguard reports direct imports in the editor; this test sees the
// indirect ones, and so what an application that uses the library links in the end.
package imports
