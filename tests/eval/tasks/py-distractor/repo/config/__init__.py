from config.settings_v2 import load as current
