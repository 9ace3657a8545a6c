@rem The npm scripts say exec, so that no shell stands between npm and the app and keeps signals. Windows has no exec.
@%*
