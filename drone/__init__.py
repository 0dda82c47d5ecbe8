"""The drone: claims work orders, runs the agent loop in a workspace, reports and delivers."""
